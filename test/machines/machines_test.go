package machines_test

import (
	"archive/zip"
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/machines"
)

var update = flag.Bool("update", false, "write the answers of the emulator and the pages")

const root = "../.."

// TestEmulator asks the emulator everything, and compares with its file.
func TestEmulator(t *testing.T) {
	got := emulate(t, winsim.Default())
	content, err := got.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range got.Answers {
		if a.Status == answer.Failed {
			t.Errorf("%s failed: %s\n%s", a.ID, a.Reason, strings.Join(a.Evidence, "\n"))
		}
	}
	for _, c := range got.Cases {
		if c.Outcome == "failed" {
			t.Errorf("%s/%s failed: %s", c.Suite, c.Name, strings.Join(c.Log, "\n"))
		}
	}
	const file = "emulator/answers.json"
	if *update {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, want) {
		golden, err := answer.Parse(want)
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("the emulator answers otherwise than %s; if that is right, run: go test ./test/machines -update\n%v", file, answer.Compare(got, golden))
	}
}

func emulate(t *testing.T, model winsim.Model) answer.Document {
	t.Helper()
	site, err := machines.Emulator(model, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := verify.Run(t.Context(), site, verify.Options{Suites: true, Program: "this repository"})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestDifferences fails for each difference between the emulator and a machine without a note.
func TestDifferences(t *testing.T) {
	list, err := machines.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range machines.Check(list) {
		t.Error(problem)
	}
}

// TestDifferences_Planted shows that a difference is found, and that a note explains it.
func TestDifferences_Planted(t *testing.T) {
	list, err := machines.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	model := winsim.Default()
	model.Storage.CreateDiskMSR, model.Storage.ForeignVolumeIDs = winsim.MSRAtOnce, true
	planted := machines.Machine{Name: "planted", Answers: emulate(t, model)}
	check := func() []string { return machines.Check([]machines.Machine{list[0], planted}) }
	var found []string
	for _, problem := range check() {
		id, _, _ := strings.Cut(strings.TrimPrefix(problem, "planted differs from the emulator: "), ",")
		found = append(found, id)
	}
	slices.Sort(found)
	// A foreign name is also that of a folder whose disk is offline, and that of a copy.
	if want := []string{"Q-msr", "Q-offline-guid", "Q-volume-arrival"}; !slices.Equal(slices.Compact(found), want) {
		t.Errorf("the differences are %q, want %q: %q", found, want, check())
	}
	planted.Notes = map[string]string{"Q-msr": "planted", "Q-offline-guid": "planted", "Q-volume-arrival": "planted"}
	if problems := check(); len(problems) > 0 {
		t.Errorf("with notes: %q", problems)
	}
	planted.Notes["Q-case"] = "does not differ"
	if problems := check(); len(problems) != 1 || !strings.Contains(problems[0], "explains Q-case") {
		t.Errorf("with a note too many: %q", problems)
	}
}

// TestPages compares the pages with the machines.
func TestPages(t *testing.T) {
	outdated, err := machines.Pages(root, *update)
	if err != nil {
		t.Fatal(err)
	}
	if len(outdated) > 0 && !*update {
		t.Errorf("%s are out of date; run: go test ./test/machines -update", outdated)
	}
}

func TestAdd(t *testing.T) {
	doc := emulate(t, winsim.Default())
	doc.Machine = answer.Machine{Kind: answer.Windows, System: "Windows Server 2022 Datacenter", Build: "10.0.20348.2113", Arch: "amd64"}
	content, err := doc.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	field := zipFile(t, map[string]string{"answers.json": string(content), "calls.jsonl.gz": "calls", "../../evil": "x"})
	name, leftOut, err := machines.Add(dir, field, "")
	if err != nil || name != "windows-server-2022-20348" {
		t.Fatalf("added as %q, %v", name, err)
	}
	if len(leftOut) > 0 {
		t.Errorf("left out: %q", leftOut)
	}
	var files []string
	_ = filepath.WalkDir(filepath.Dir(dir), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path != field {
			files = append(files, filepath.ToSlash(strings.TrimPrefix(path, dir)))
		}
		return err
	})
	if want := []string{"/windows-server-2022-20348/answers.json", "/windows-server-2022-20348/calls.jsonl.gz"}; !slices.Equal(files, want) {
		t.Errorf("the files are %q, want %q", files, want)
	}
	list, err := machines.Load(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if table := machines.Table(list); !strings.Contains(table, "Windows Server 2022 Datacenter, 10.0.20348.2113, amd64") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestAdd_Refuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"it has no answers.json": {"other": "x"},
		"read answers":           {"answers.json": "{"},
		"is not a question":      {"answers.json": `{"format":1,"machine":{"kind":"windows"},"answers":[{"id":"Q-nothing","status":"answered"}]}`},
		"the format is 2":        {"answers.json": `{"format":2}`},
		"not a name":             {"answers.json": `{"format":1,"machine":{"kind":"windows","system":"?"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := machines.Add(t.TempDir(), zipFile(t, files), "")
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want one with %q", err, name)
			}
		})
	}
}

func zipFile(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "field.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := zip.NewWriter(file)
	for name, content := range files {
		member, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
