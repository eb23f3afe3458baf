package machines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// Recording is what the replay of the recorded calls of a machine on an emulated node has shown.
type Recording struct {
	File   string
	Report replay.Report
	Err    error // it cannot be replayed
}

// replayAll makes the recorded calls of a machine on emulated nodes.
func replayAll(ctx context.Context, dir string) (list []Recording) {
	for _, file := range recordings {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r := Recording{File: file}
		report, err := replay.CompareFile(ctx, path)
		if r.Err = replayable(report, err); r.Err == nil {
			r.Report = *report
		}
		list = append(list, r)
	}
	return list
}

// replayable fails unless a replay has compared calls.
func replayable(report *replay.Report, err error) error {
	if err == nil && report.Calls == 0 {
		return errors.New("no call was compared")
	}
	return err
}

// differences are the answers of an emulated node that differ from the recorded ones, by the method of the call.
func (m Machine) differences() map[string][]replay.Difference {
	byMethod := map[string][]replay.Difference{}
	for _, r := range m.Recordings {
		for _, d := range r.Report.Differences {
			byMethod[d.Method] = append(byMethod[d.Method], d)
		}
	}
	return byMethod
}

// compared counts the recorded calls that were compared, and those that the emulated node answers otherwise.
func (m Machine) compared() (calls, differ int) {
	for _, r := range m.Recordings {
		calls += r.Report.Calls
		others := map[uint64]bool{}
		for _, d := range r.Report.Differences {
			others[d.Call] = true
		}
		differ += len(others)
	}
	return calls, differ
}

// checkCalls returns a sentence for each recording that cannot be replayed, and for each call whose answers
// differ without a note. It adds to differ how many answers to each call do.
func checkCalls(m Machine, differ map[string]int) (problems []string) {
	for _, r := range m.Recordings {
		if r.Err != nil {
			problems = append(problems, fmt.Sprintf("test/machines/%s/%s cannot be replayed: %v", m.Name, r.File, r.Err))
		}
	}
	byMethod := m.differences()
	for _, method := range slices.Sorted(maps.Keys(byMethod)) {
		list, key := byMethod[method], callKey+method
		differ[key] = len(list)
		if m.explains(key) == nil {
			problems = append(problems, fmt.Sprintf(
				"%s differs from the emulator in %d answers to %s; the first is %s; change the emulator, or explain the call %q in test/machines/%s/%s; "+
					"csi-proxy-sim replay shows them all", m.Name, len(list), method, list[0], method, m.Name, notesFile))
		}
	}
	return problems
}

// callRows returns a line of a table for each call and machine whose recorded answers differ.
func callRows(list []Machine) string {
	var rows []string
	for _, m := range list {
		for method, differences := range m.differences() {
			first := differences[0]
			text := fmt.Sprintf("%d, the first: recorded %s, emulated %s", len(differences), brief(first.Recorded, longestValue), brief(first.Emulated, longestValue))
			if note := m.explains(callKey + method); note != nil {
				text += ". " + note.Text
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", cell(method), m.Name, cell(text)))
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "")
}

// longestValue is how many characters of a value of a recorded call the page shows.
const longestValue = 80

// brief cuts a text for a cell.
func brief(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
