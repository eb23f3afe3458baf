//go:build linux && wine

package wine

import (
	"archive/zip"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/journal"
	"github.com/kubernetes-csi/csi-proxy/v2/test/machines"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/devices"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/rig"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

var update = flag.Bool("update", false, "keep the answers of this Wine in test/machines")

// exitFindings is how csi-proxy-verify ends if questions or cases failed.
const exitFindings = 3

// TestVerify runs csi-proxy-verify.exe on the disks of the rig: first a run that is killed, then one that
// removes what is left and goes to its end. Its answers must be those that test/machines has for this
// version of Wine, if it has any.
func TestVerify(t *testing.T) {
	build(t)
	p := newPrefix(t)
	links, err := p.StoresLinks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	startIn(t, p, rig.Config{Preset: devices.Blank, Files: links, NoDaemon: true})
	if err := p.Copy(filepath.Join(root(t), "bin", "wine", "csi-proxy-verify.exe")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Path(`C:\password.txt`), []byte("csi-Pa55\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var disks []string
	for i := range devices.BlankDisks {
		disks = append(disks, fmt.Sprint(devices.FirstBlank+i))
	}
	args := []string{
		"-dir", `C:\verify`, "-disks", strings.Join(disks, ","),
		"-share", `\\files\data`, "-user", "csi", "-password-file", `C:\password.txt`,
	}
	refuse(t, p, args)
	args = append(args, "-yes")
	named := append(slices.Clone(args), "-out", `C:\named.zip`, "-names", "-only", "Q-smb-errors,Q-smb-parameters,Q-smb-credentials-kept,Q-smb-domain")
	if output, err := p.Run(t.Context(), `C:\csi-proxy-verify.exe`, named...); err != nil { // it uses no disk
		t.Errorf("with names: %v\n%s", err, output)
	}
	kill(t, p, args)
	args = append(args, "-out", `C:\field.zip`)
	interrupt(t, p, args)
	kill(t, p, args)

	began := time.Now()
	output, err := p.Run(t.Context(), `C:\csi-proxy-verify.exe`, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != exitFindings) {
		t.Fatalf("%v\n%s", err, output)
	}
	if doc := read(t, p.Path(`C:\field.zip`)); (err != nil) != (doc.Count(answer.Failed)+doc.CountCases(trial.Failed) > 0) {
		t.Errorf("it ends with %v, after %d questions and %d cases that failed", err, doc.Count(answer.Failed), doc.CountCases(trial.Failed))
	}
	t.Logf("took %s:\n%s", time.Since(began), output)
	if !strings.Contains(output, "Removed: folder run-") {
		t.Error("it does not say that it has removed what the killed run left")
	}
	if _, err := os.Stat(p.Path(`C:\verify`)); !os.IsNotExist(err) {
		t.Errorf("the folder that it made is left: %v", err)
	}
	for _, field := range []string{`C:\field.zip`, `C:\named.zip`} {
		noSecrets(t, p.Path(field))
	}
	compare(t, p.Path(`C:\field.zip`))
}

// noSecrets looks for the password of the share, and for the wrong one, in all that a zip holds.
func noSecrets(t *testing.T, field string) {
	t.Helper()
	archive, err := zip.OpenReader(field)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	mapped := false
	for _, member := range archive.File {
		file, err := member.Open()
		if err != nil {
			t.Fatal(err)
		}
		var plain io.Reader = file
		if strings.HasSuffix(member.Name, ".gz") {
			if plain, err = gzip.NewReader(file); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(plain)
		if err != nil {
			t.Fatal(err)
		}
		mapped = mapped || strings.Contains(string(text), `"method":"CreateSMBMapping"`)
		for _, secret := range []string{"csi-Pa55", "wrong-Pa55word"} {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				if strings.Contains(string(text), form) {
					t.Errorf("%s of %s has a password", member.Name, filepath.Base(field))
				}
			}
		}
		file.Close()
	}
	if !mapped {
		t.Errorf("%s has no call with a password", filepath.Base(field))
	}
}

// refuse runs the program without -yes, which changes nothing.
func refuse(t *testing.T, p *prefix.Prefix, args []string) {
	t.Helper()
	output, err := p.Run(t.Context(), `C:\csi-proxy-verify.exe`, args...)
	if err == nil || !strings.Contains(output, "add -yes") || !strings.Contains(output, "DISK 11: EVERYTHING ON IT IS LOST") {
		t.Errorf("without -yes: %v\n%s", err, output)
	}
	if _, err := os.Stat(p.Path(`C:\verify`)); !os.IsNotExist(err) {
		t.Errorf("without -yes it made the folder: %v", err)
	}
	output, err = p.Run(t.Context(), `C:\csi-proxy-verify.exe`, "-dir", `C:\Windows\Temp\verify`, "-yes")
	if err == nil || !strings.Contains(output, "belongs to Windows") {
		t.Errorf("in the directory of Windows: %v\n%s", err, output)
	}
}

// interrupt ends a run with Ctrl+C. It removes what a killed run has left, cleans up, and keeps the answers that
// it has.
func interrupt(t *testing.T, p *prefix.Prefix, args []string) {
	t.Helper()
	process := startVerify(t, p, args)
	if err := process.Interrupt(); err != nil {
		t.Fatal(err)
	}
	err := process.Wait()
	for _, want := range []string{"Interrupted. This ends the question", "the run was interrupted"} {
		if err == nil || !strings.Contains(process.Output(), want) {
			t.Errorf("after an interrupt: %v, want %q:\n%s", err, want, process.Output())
		}
	}
	if _, err := os.Stat(p.Path(`C:\verify`)); !os.IsNotExist(err) {
		t.Errorf("an interrupted run leaves the folder that the killed one made: %v", err)
	}
	doc := read(t, p.Path(`C:\field.zip`))
	if a, ok := doc.Find("Q-case"); !ok || a.Status != answer.Answered {
		t.Errorf("before the interrupt: %+v", a)
	}
	if a, ok := doc.Find("Q-cluster-sizes"); !ok || a.Status != answer.NotAsked {
		t.Errorf("after the interrupt: %+v", a)
	}
	if err := os.Remove(p.Path(`C:\field.zip`)); err != nil { // a run replaces no zip
		t.Fatal(err)
	}
}

// kill kills a run that has made files, and perhaps a zip.
func kill(t *testing.T, p *prefix.Prefix, args []string) {
	t.Helper()
	process := startVerify(t, p, args)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-process.Done()
	left := strings.Join(entries(t, p.Path(`C:\verify`)), " ")
	if !regexp.MustCompile(`^(csi-proxy-verify-[0-9-]+\.zip )?` + journal.FileName + ` run-[0-9]+$`).MatchString(left) {
		t.Fatalf("a killed run leaves %s, want the journal and a folder\n%s", left, process.Output())
	}
}

// startVerify starts a run, and returns when it asks about files, before it uses disks.
func startVerify(t *testing.T, p *prefix.Prefix, args []string) *prefix.Process {
	t.Helper()
	process, err := p.Start(t.Context(), `C:\csi-proxy-verify.exe`, args...)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 5 * time.Minute // first it removes what is left of the run before
	for deadline := time.After(limit); !strings.Contains(process.Output(), "Q-case"); {
		select {
		case <-process.Done():
			t.Fatalf("it has ended: %v", process.Wait())
		case <-deadline:
			t.Fatalf("it does not ask about files within %s:\n%s", limit, process.Output())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return process
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

// compare compares the answers of a zip with those of test/machines.
func compare(t *testing.T, field string) {
	t.Helper()
	got := read(t, field)
	name := strings.ReplaceAll(strings.ToLower(got.Machine.System), " ", "-")
	dir := filepath.Join(root(t), machines.Directory)
	if *update {
		if _, _, err := machines.Add(t.Context(), dir, field, machines.Options{Name: name, Replace: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := machines.Pages(t.Context(), root(t), true); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, name, "answers.json"))
	if os.IsNotExist(err) {
		t.Skipf("there are no answers of %s to compare with; -update keeps these", name)
	}
	want, err := answer.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range answer.Compare(got, want) {
		if d.Fact != "asking" {
			t.Errorf("not as in %s: %s", name, d)
		}
	}
	for _, a := range got.Answers {
		if b, ok := want.Find(a.ID); ok && a.Status != b.Status {
			t.Errorf("%s: %s (%s), and in %s: %s (%s)", a.ID, a.Status, a.Reason, name, b.Status, b.Reason)
		}
	}
	if diff := cmp.Diff(outcomes(want), outcomes(got)); diff != "" {
		t.Errorf("cases end otherwise than in %s (-there +here):\n%s", name, diff)
	}
}

// outcomes returns how the cases ended, by their names.
func outcomes(doc answer.Document) map[string]trial.Outcome {
	ended := map[string]trial.Outcome{}
	for _, c := range doc.Cases {
		ended[c.Suite+"/"+c.Name] = c.Outcome
	}
	return ended
}

func read(t *testing.T, field string) answer.Document {
	t.Helper()
	archive, err := zip.OpenReader(field)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	content, err := archive.Open("answers.json")
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := answer.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := prefix.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
