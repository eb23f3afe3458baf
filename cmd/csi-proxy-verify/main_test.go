package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

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
		"one that cases answer": {[]string{"-dir", `C:\verify`, "-only", "Q-symlink"}, "answered by the conformance suite"},
		"only nothing":          {[]string{"-dir", `C:\verify`, "-only", ""}, "-only is empty"},
		"only a comma":          {[]string{"-dir", `C:\verify`, "-only", ","}, "-only is empty"},
		"no disks":              {[]string{"-dir", `C:\verify`, "-disks", " , "}, "-disks is empty"},
		"no share":              {[]string{"-dir", `C:\verify`, "-share", ""}, "-share is empty"},
		"no portal":             {[]string{"-dir", `C:\verify`, "-portal="}, "-portal is empty"},
		"an empty folder":       {[]string{"-dir", ""}, "-dir is empty"},
		"a disk without number": {[]string{"-dir", `C:\verify`, "-disks", "1,C:"}, `"C:" is not the number of a disk`},
		"not a share":           {[]string{"-dir", `C:\verify`, "-share", `C:\x`}, "-share"},
		"no password":           {[]string{"-dir", `C:\verify`, "-share", `\\a\b`, "-password-file", "missing"}, "-password-file"},
		"a list of some":        {[]string{"-list", "-only", "Q-nope"}, "take no -only"},
		"JSON of a run":         {[]string{"-dir", `C:\verify`, "-json"}, "-json is for -list"},
		"a user without share":  {[]string{"-dir", `C:\verify`, "-user", "a"}, "are for -share"},
		"a password for what":   {[]string{"-dir", `C:\verify`, "-password-file", "x"}, "are for -share"},
		"a portal without port": {[]string{"-dir", `C:\verify`, "-portal", "10.0.0.1"}, "-portal"},
		"a portal without host": {[]string{"-dir", `C:\verify`, "-portal", ":3260"}, "names no server"},
		"a portal with port 0":  {[]string{"-dir", `C:\verify`, "-portal", "10.0.0.1:0"}, `"0" is not a port`},
		"a disk twice":          {[]string{"-dir", `C:\verify`, "-disks", "3,4,3"}, "disk 3 is named twice"},
		"a user alone":          {[]string{"-dir", `C:\verify`, "-share", `\\a\b`, "-user", "a"}, "belong together"},
		"a relative folder":     {[]string{"-dir", "verify", "-yes"}, "not an absolute Windows path"},
		"a folder on a share":   {[]string{"-dir", `\\a\b\verify`, "-yes"}, "on a local drive"},
		"a whole drive":         {[]string{"-dir", `C:\`, "-yes"}, `such as C:\verify`},
		"a cleanup and more":    {[]string{"-dir", `C:\verify`, "-cleanup", "-yes"}, "-cleanup takes no -yes"},
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
	for _, want := range []string{`C:\verify`, "DISK 3: EVERYTHING ON IT IS LOST", "DISK 4", `maps \\files\data`, "wrong password", "your password goes to the server of the share only", "10.0.0.1:3260"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, &out)
		}
	}
}

// TestPlan_Some: a run that asks some questions does not announce all of them.
func TestPlan_Some(t *testing.T) {
	for want, args := range map[string][]string{
		"asks this machine 2 questions. It takes some minutes.":  {"-only", "Q-msr,Q-case,Q-msr"},
		fmt.Sprintf("%d questions. It takes some", asked()):      {"-questions-only"},
		"and runs the conformance suite. It takes up to an hour": nil,
	} {
		var o options
		if err := o.parse(append([]string{"-dir", `C:\verify`}, args...), &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if o.printPlan(&out); !strings.Contains(out.String(), want) {
			t.Errorf("%q: the plan lacks %q:\n%s", args, want, &out)
		}
	}
}

func TestRun_Help(t *testing.T) {
	var out, errors bytes.Buffer
	if code := run([]string{"-h"}, &out, &errors); code != 0 || errors.Len() > 0 {
		t.Errorf("exit code %d, errors %q", code, &errors)
	}
	for _, want := range []string{"Exit codes:", "  3  the zip", "-password-file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help lacks %q:\n%s", want, &out)
		}
	}
}

func document() answer.Document {
	return answer.Document{
		Format: answer.Format, Machine: answer.Machine{Kind: answer.Windows, System: "Windows Server 2022"},
		Answers: []answer.Answer{{ID: "Q-msr", Status: answer.Failed, Reason: "the device is gone"}},
		Cases:   []answer.Case{{Suite: "disk", Name: "one", Outcome: "failed", Reason: "wrong"}, {Suite: "disk", Name: "two", Outcome: "passed"}},
	}
}

// TestSummary: what has failed is named at the end.
func TestSummary(t *testing.T) {
	var out bytes.Buffer
	printSummary(&out, document())
	const want = "Failed: Q-msr: the device is gone\nFailed: disk/one: wrong\n" +
		"0 questions answered, 1 failed, 0 not asked. 1 cases passed, 1 failed, 0 skipped.\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// record writes a recording with an older part.
func record(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "calls.jsonl")
	for _, name := range []string{path, path + ".1"} {
		if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestWriteZip(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "field.zip")
	file, err := createZip(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeZip(file, document(), record(t, dir)); err != nil {
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
	if got, want := strings.Join(names, " "), "answers.json report.md calls.jsonl.gz calls.1.jsonl.gz"; got != want {
		t.Errorf("the zip has %s, want %s", got, want)
	}
}

func TestCreateZip(t *testing.T) {
	dir := t.TempDir()
	kept, empty := filepath.Join(dir, "kept.zip"), filepath.Join(dir, "empty.zip")
	for path, content := range map[string]string{kept: "precious", empty: ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := createZip(kept); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a file that exists: %v", err)
	}
	if content, _ := os.ReadFile(kept); string(content) != "precious" {
		t.Errorf("it has become %q", content)
	}
	file, err := createZip(empty) // a killed run leaves it
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	if _, err := createZip(filepath.Join(dir, "missing", "field.zip")); err == nil || !strings.Contains(err.Error(), "-out") {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}

// TestRescue: if the zip cannot be written, the answers are somewhere, and the error says where.
func TestRescue(t *testing.T) {
	dir := t.TempDir()
	file, err := createZip(filepath.Join(dir, "field.zip"))
	if err != nil {
		t.Fatal(err)
	}
	file.Close() // as on a full disk, nothing can be written
	recording := record(t, t.TempDir())
	if err := writeZip(file, document(), recording); err == nil {
		t.Fatal("a zip was written to a closed file")
	}
	err = rescue(dir, time.Unix(0, 0), document(), recording)
	folder := filepath.Join(dir, "answers-19700101-000000")
	if err == nil || !strings.Contains(err.Error(), "the answers are in "+folder) {
		t.Errorf("got %v, want an error that names %s", err, folder)
	}
	for _, name := range []string{"answers.json", "report.md", "calls.jsonl", "calls.jsonl.1"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
}
