package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

func TestRun_List(t *testing.T) {
	var out, errors bytes.Buffer
	if code := run([]string{"-list"}, &out, &errors); code != 0 || errors.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &errors)
	}
	for _, q := range question.All() {
		if !strings.Contains(out.String(), "  "+q.ID+": ") {
			t.Errorf("%s is not listed", q.ID)
		}
	}
	out.Reset()
	run([]string{"-list", "-json"}, &out, &errors)
	var list []listed
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != len(question.All()) {
		t.Errorf("%d questions as JSON, %v", len(list), err)
	}
}

func TestRun_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no folder":             {nil, "name a folder"},
		"an argument":           {[]string{"-dir", `C:\verify`, "now"}, `"now" is not a flag`},
		"an unknown flag":       {[]string{"-sure"}, "not defined: -sure"},
		"an unknown question":   {[]string{"-dir", `C:\verify`, "-only", "Q-x"}, "there is no question Q-x"},
		"one that is not asked": {[]string{"-dir", `C:\verify`, "-only", "Q-events"}, "Q-events is not asked: needs the daemon"},
		"a disk without number": {[]string{"-dir", `C:\verify`, "-disks", "1,C:"}, `"C:" is not the number of a disk`},
		"not a share":           {[]string{"-dir", `C:\verify`, "-share", `C:\x`}, "-share"},
		"no password":           {[]string{"-dir", `C:\verify`, "-share", `\\a\b`, "-password-file", "missing"}, "-password-file"},
		"a portal without port": {[]string{"-dir", `C:\verify`, "-portal", "10.0.0.1"}, "-portal"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			if code := run(c.args, &out, &errors); code != exitRefused || !strings.Contains(errors.String(), c.want) {
				t.Errorf("exit code %d, %q, want %q", code, &errors, c.want)
			}
		})
	}
}

func TestRun_NotWindows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this is Windows")
	}
	for _, args := range [][]string{{"-dir", `C:\verify`, "-yes"}, {"-dir", `C:\verify`, "-cleanup"}} {
		var out, errors bytes.Buffer
		if code := run(args, &out, &errors); code != exitFailed || !strings.Contains(errors.String(), "only -list works here") {
			t.Errorf("%q: exit code %d, %q", args, code, &errors)
		}
	}
}

// TestPlan: what a run does is said before, loudest about disks that the operator has named.
func TestPlan(t *testing.T) {
	var o options
	args := []string{"-dir", `C:\verify`, "-disks", "3, 4", "-share", `\\Files\Data`, "-portal", "10.0.0.1:3260"}
	if err := o.parse(args, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o.printPlan(&out)
	for _, want := range []string{`C:\verify`, "DISK 3: EVERYTHING ON IT IS LOST", "DISK 4", `\\files\data`, "10.0.0.1:3260"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, &out)
		}
	}
}

func TestWriteZip(t *testing.T) {
	dir := t.TempDir()
	recording := filepath.Join(dir, "calls.jsonl")
	if err := os.WriteFile(recording, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "field.zip")
	doc := answer.Document{Format: answer.Format, Machine: answer.Machine{Kind: answer.Windows, System: "Windows Server 2022"}}
	if err := writeZip(path, doc, recording); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	for _, file := range archive.File {
		names = append(names, file.Name)
	}
	if got, want := strings.Join(names, " "), "answers.json report.md calls.jsonl.gz"; got != want {
		t.Errorf("the zip has %s, want %s", got, want)
	}
}
