package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

// printPlan says what a run does to the machine.
func (o *options) printPlan(w io.Writer) {
	number, suite, limit := asked(), " and runs the conformance suite", "up to an hour"
	if o.questionsOnly {
		suite, limit = "", "some minutes"
	}
	if len(o.only) > 0 {
		number = len(o.only)
	}
	fmt.Fprintf(w, "csi-proxy-verify asks this machine %d questions%s. It takes %s.\n", number, suite, limit)
	fmt.Fprintln(w, "It does this:")
	fmt.Fprintf(w, "  - creates files, links and mounted folders in %s\n", o.machine.Dir)
	if len(o.machine.Disks) > 0 {
		for _, number := range o.machine.Disks {
			fmt.Fprintf(w, "  - partitions and formats DISK %d: EVERYTHING ON IT IS LOST; it must be empty and not the disk of Windows\n", number)
		}
	} else {
		fmt.Fprintln(w, "  - creates virtual disks of 1 GiB there, attaches, partitions, formats, grows, copies and detaches them")
	}
	fmt.Fprintln(w, "  - rescans the storage adapters, and mounts the volume of Windows at a folder there for a moment")
	fmt.Fprintln(w, "  - installs services of its own that do nothing, starts and stops them, and removes them; it touches no other service")
	if o.machine.Share != nil {
		fmt.Fprintf(w, "  - maps %s for all users, and removes the mapping\n", o.machine.Share.Remote)
		fmt.Fprintln(w, "  - tries the same server with a wrong password, with another user, with the user in another domain, and for a share that it does not have")
		fmt.Fprintln(w, "  - tries a server that does not exist, with a made-up user and password; your password goes to the server of the share only")
	}
	if o.machine.Portal != nil {
		fmt.Fprintf(w, "  - registers the iSCSI portals %s and 127.0.0.1:9, and removes them; it logs in to no target\n", o.machine.Portal)
	}
	fmt.Fprintln(w, "It changes no other disk, and reads of them only what they report about themselves.")
	fmt.Fprintln(w, "It removes everything it makes, also after Ctrl+C. After a kill, the next run or -cleanup does.")
	if o.machine.Names {
		fmt.Fprintln(w, "The zip has names and serial numbers of this machine, and no passwords.")
	} else {
		fmt.Fprintln(w, "The zip has no passwords. The recorded calls in it have names and serial numbers of this machine only as hashes.")
	}
	fmt.Fprintln(w, "The answers and the report are not hashed: they show models of disks, access lists with SIDs, paths in the folder, the share and the portal.")
	fmt.Fprintln(w)
}

// printSummary names what has failed, so that it is seen after an hour of output.
func printSummary(w io.Writer, doc answer.Document) {
	for _, a := range doc.Answers {
		if a.Status == answer.Failed {
			fmt.Fprintf(w, "Failed: %s: %s\n", a.ID, a.Reason)
		}
	}
	for _, c := range doc.Cases {
		if c.Outcome == trial.Failed {
			fmt.Fprintf(w, "Failed: %s/%s: %s\n", c.Suite, c.Name, c.Reason)
		}
	}
	fmt.Fprintf(w, "%d questions answered, %d failed, %d not asked. %d cases passed, %d failed, %d skipped.\n",
		doc.Count(answer.Answered), doc.Count(answer.Failed), doc.Count(answer.NotAsked),
		doc.CountCases(trial.Passed), doc.CountCases(trial.Failed), doc.CountCases(trial.Skipped))
}

// asked is the number of questions that the program asks.
func asked() (n int) {
	for _, q := range question.All() {
		if q.NotAsked == "" {
			n++
		}
	}
	return n
}

// listed is a question in the list.
type listed struct {
	ID       string `json:"id"`
	Section  string `json:"section"`
	Question string `json:"question"`
	Expected string `json:"expected,omitempty"`
	NotAsked string `json:"notAsked,omitempty"`
}

func (o *options) printList(w io.Writer) error {
	if o.asJSON {
		list := []listed{}
		for _, section := range question.Sections() {
			for _, q := range section.Questions {
				list = append(list, listed{q.ID, section.Title, q.Question, q.Expected, q.NotAsked})
			}
		}
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	}
	for i, section := range question.Sections() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n", section.Title)
		for _, q := range section.Questions {
			fmt.Fprintf(w, "  %s: %s\n", q.ID, q.Question)
			if q.Expected != "" {
				fmt.Fprintf(w, "      expected: %s\n", q.Expected)
			}
			if q.NotAsked != "" {
				fmt.Fprintf(w, "      not asked: %s\n", q.NotAsked)
			}
		}
	}
	_, err := fmt.Fprintf(w, "\n%d questions, of which csi-proxy-verify asks %d.\n", len(question.All()), asked())
	return err
}
