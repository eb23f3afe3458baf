package machines_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
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
	list, err := machines.Load(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range machines.Check(list) {
		t.Error(problem)
	}
}

// TestDifferences_Planted shows that a difference is found, and that a note explains it.
func TestDifferences_Planted(t *testing.T) {
	list, err := machines.Load(t.Context(), ".")
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
	var facts []string
	for _, d := range answer.Compare(planted.Answers, list[0].Answers) {
		facts = append(facts, d.ID+"/"+d.Fact)
	}
	for name, test := range map[string]struct {
		notes []machines.Note
		want  []string // a part of each problem
	}{
		"explained":     {[]machines.Note{{Text: "planted", Facts: facts}}, nil},
		"one is not":    {[]machines.Note{{Text: "planted", Facts: facts[1:]}}, []string{fmt.Sprintf("explain the fact %q in", facts[0])}},
		"the question":  {[]machines.Note{{Text: "planted", Facts: append([]string{"Q-msr"}, facts...)}}, []string{"explains Q-msr, which does not differ"}},
		"by nothing":    {[]machines.Note{{Text: " ", Facts: facts}}, []string{"has a note without a text"}},
		"nothing":       {[]machines.Note{{Text: "planted", Facts: facts}, {Text: "planted"}}, []string{"or without what it explains"}},
		"twice":         {[]machines.Note{{Text: "planted", Facts: facts}, {Text: "again", Facts: facts[:1]}}, []string{facts[0] + ", twice"}},
		"one too many":  {[]machines.Note{{Text: "planted", Facts: append([]string{"Q-case/another case"}, facts...)}}, []string{"explains Q-case/another case, which does not differ"}},
		"a call's note": {[]machines.Note{{Text: "planted", Facts: facts, Calls: map[string]int{"FlushVolume": 1}}}, []string{"explains call FlushVolume, which does not differ"}},
	} {
		planted.Notes = test.notes
		problems := check()
		if len(problems) != len(test.want) || len(problems) > 0 && !strings.Contains(problems[0], test.want[0]) {
			t.Errorf("%s: the problems are %q, want %q", name, problems, test.want)
		}
	}
}

// TestNew: what differs since a machine was replaced is named, also if a note explains it.
func TestNew(t *testing.T) {
	machine := func(name, value string) machines.Machine {
		return machines.Machine{Name: name, Answers: answer.Document{Answers: []answer.Answer{{
			ID: "Q-case", Status: answer.Answered, Facts: []answer.Fact{{Name: "another case", Value: value}, {Name: "known", Value: name}},
		}}}, Notes: []machines.Note{{Text: "planted", Facts: []string{"Q-case/another case", "Q-case/known"}}}}
	}
	before, after := []machines.Machine{machine("emulator", "ok"), machine("real", "ok")}, []machines.Machine{machine("emulator", "ok"), machine("real", "no")}
	if differences := machines.New(before, after, "real"); len(differences) != 1 || differences[0].String() != "Q-case, another case: no, not ok" {
		t.Errorf("the new differences are %v", differences)
	}
	if differences := machines.New(before[:1], after, "real"); len(differences) != 2 {
		t.Errorf("the differences of a new machine are %v", differences)
	}
}

// TestPages compares the pages with the machines.
func TestPages(t *testing.T) {
	outdated, err := machines.Pages(t.Context(), root, *update)
	if err != nil {
		t.Fatal(err)
	}
	if len(outdated) > 0 && !*update {
		t.Errorf("%s are out of date; run: go test ./test/machines -update", outdated)
	}
}

func TestAdd(t *testing.T) {
	doc := emulate(t, winsim.Default())
	doc.Machine = answer.Machine{Kind: answer.Windows, System: "Windows Server 2022 Datacenter", Installation: "Server Core", Build: "10.0.20348.2113", Arch: "amd64"}
	content, err := doc.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	field := zipFile(t, map[string]string{"answers.json": string(content), "calls.jsonl.gz": recording(t), "../../evil": "x"})
	name, leftOut, err := machines.Add(t.Context(), dir, field, machines.Options{})
	if err != nil || name != "windows-server-2022-core-20348" {
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
	if want := []string{"/windows-server-2022-core-20348/answers.json", "/windows-server-2022-core-20348/calls.jsonl.gz"}; !slices.Equal(files, want) {
		t.Errorf("the files are %q, want %q", files, want)
	}
	list, err := machines.Load(t.Context(), dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if table := machines.Table(list); !strings.Contains(table, "Windows Server 2022 Datacenter, Server Core, 10.0.20348.2113, amd64") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestAdd_Refuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"it has no answers.json": {"other": "x"},
		"read answers":           {"answers.json": "{"},
		"is not a question":      {"answers.json": `{"format":1,"machine":{"kind":"windows"},"answers":[{"id":"Q-nothing","status":"answered"}]}`},
		"without an answer":      {"answers.json": `{"format":1,"machine":{"kind":"windows"},"answers":[{"id":"Q-case","status":"answered"}]}`},
		"nul":                    {"answers.json": `{"format":1,"machine":{"kind":"windows","system":"NUL"}}`},
		"name of a device":       {"answers.json": `{"format":1,"machine":{"kind":"windows","system":"com1.2022"}}`},
		"the format is 2":        {"answers.json": `{"format":2}`},
		"is the emulator":        {"answers.json": `{"format":1,"machine":{"kind":"emulator","system":"x"}}`},
		"name of the emulator":   {"answers.json": `{"format":1,"machine":{"kind":"windows","system":"Emulator"}}`},
		"not a name":             {"answers.json": `{"format":1,"machine":{"kind":"windows","system":"?"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := machines.Add(t.Context(), t.TempDir(), zipFile(t, files), machines.Options{})
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want one with %q", err, name)
			}
		})
	}
}

// recording is one as csi-proxy-verify writes it.
func recording(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("wine-10.0/calls.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestAdd_Again: a machine is replaced on demand only, by one of its kind, with its recordings.
func TestAdd_Again(t *testing.T) {
	dir, calls := t.TempDir(), recording(t)
	answers := func(kind string) string {
		return `{"format":1,"machine":{"kind":"` + kind + `","system":"Windows Server 2022"}}`
	}
	field := zipFile(t, map[string]string{"answers.json": answers("windows"), "calls.jsonl.gz": calls, "calls.1.jsonl.gz": calls})
	name, leftOut, err := machines.Add(t.Context(), dir, field, machines.Options{})
	if err != nil || len(leftOut) > 0 {
		t.Fatalf("%v, left out: %q", err, leftOut)
	}
	notes := filepath.Join(dir, name, "notes.json")
	if err := os.WriteFile(notes, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := machines.Add(t.Context(), dir, field, machines.Options{}); err == nil || !strings.Contains(err.Error(), "-replace") {
		t.Errorf("without Replace: %v", err)
	}
	wine := zipFile(t, map[string]string{"answers.json": answers("wine")})
	if _, _, err := machines.Add(t.Context(), dir, wine, machines.Options{Replace: true}); err == nil || !strings.Contains(err.Error(), "of kind wine") {
		t.Errorf("with another kind: %v", err)
	}
	notReplayed := recordCalls(t, func(*winsim.Node, win.Machine) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := machines.Add(ctx, dir, field, machines.Options{Replace: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	for _, bad := range []string{calls[:len(calls)/2], notReplayed} {
		field = zipFile(t, map[string]string{"answers.json": answers("windows"), "calls.jsonl.gz": bad, "calls.1.jsonl.gz": "calls"})
		if _, leftOut, err = machines.Add(t.Context(), dir, field, machines.Options{Replace: true}); err != nil || len(leftOut) != 2 {
			t.Errorf("files without recordings: %v, left out: %q", err, leftOut)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, name))
	if err != nil || len(entries) != 2 || entries[0].Name() != "answers.json" || entries[1].Name() != "notes.json" {
		t.Errorf("the files are %v, %v, want the answers and the notes", entries, err)
	}
}

// TestAdd_Name: a name is short, and part of no path.
func TestAdd_Name(t *testing.T) {
	for system, want := range map[string]string{
		"../.. Server": "server", "a..b - c.": "a-b-c", "Wine 11.16": "wine-11.16", strings.Repeat("long name ", 99): "long-name-long-name-long-name-long-name-long-nam",
	} {
		content, err := answer.Document{Format: answer.Format, Machine: answer.Machine{Kind: answer.Wine, System: system}}.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		name, _, err := machines.Add(t.Context(), t.TempDir(), zipFile(t, map[string]string{"answers.json": string(content)}), machines.Options{})
		if err != nil || name != want {
			t.Errorf("%.20q is added as %q, %v, want %q", system, name, err, want)
		}
	}
}

// TestTable_Hostile: a text of a machine stays text in its cell, and a difference is shown without a note.
func TestTable_Hostile(t *testing.T) {
	const evil = "[x](javascript:y) ![x](http://evil) `|` <b> \\| a\r\nb www.evil &#91; a@b.evil $x$"
	facts := func(value string) []answer.Answer {
		return []answer.Answer{{ID: "Q-case", Status: answer.Answered, Facts: []answer.Fact{{Name: "another case", Value: value}}}}
	}
	table := machines.Table([]machines.Machine{
		{Name: "emulator", Answers: answer.Document{Machine: answer.Machine{Kind: answer.Emulator}, Answers: facts("ok")}},
		{Name: "evil", Answers: answer.Document{Machine: answer.Machine{Kind: answer.Windows, System: evil}, Answers: facts("no")}},
	})
	const want = "| [evil](../test/machines/evil) | \\[x\\](javascript:y) !\\[x\\](http:\\//evil) \\`\\|\\` &lt;b> \\\\\\| a  b www\\.evil &amp;#91; a<span>@</span>b.evil <span>$</span>x<span>$</span> |"
	if !strings.Contains(table, want) {
		t.Errorf("the table is\n%s\nwant in it\n%s", table, want)
	}
	if !strings.HasSuffix(table, "| Q-case |\n") {
		t.Errorf("a difference is not shown:\n%s", table)
	}
}

// TestPage_Long: a machine cannot make the pages as long as it likes.
func TestPage_Long(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	list := []machines.Machine{{Name: "long", Answers: answer.Document{
		Machine: answer.Machine{Kind: answer.Windows, System: long},
		Answers: []answer.Answer{
			{ID: "Q-case", Status: answer.Answered, Facts: []answer.Fact{{Name: "another case", Value: long}}},
			{ID: "Q-msr", Status: answer.Failed, Reason: long},
			{ID: "Q-buffers", Status: answer.Answered, Measured: slices.Repeat([]answer.Fact{{Name: "a", Value: "b"}}, 100_000)},
		},
	}, Notes: []machines.Note{{Text: "The note is whole.", Facts: []string{"Q-case/another case"}}}}}
	page := machines.Page(list)
	if n := len(page); n > 10_000 || strings.Count(page, "xxx...") != 2 || !strings.Contains(page, "xxx.... The note is whole. |") {
		t.Errorf("the page has %d bytes: %.5000s", n, page)
	}
	if table := machines.Table(list); len(table) > 1000 {
		t.Errorf("the table has %d bytes", len(table))
	}
}

// TestTable_Real: the page says that no machine is real, until one is.
func TestTable_Real(t *testing.T) {
	for kind, want := range map[answer.Kind]bool{answer.Emulator: true, answer.Wine: true, answer.Windows: false} {
		table := machines.Table([]machines.Machine{{Name: "x", Answers: answer.Document{Machine: answer.Machine{Kind: kind}}}})
		if strings.Contains(table, "No real Windows machine") != want {
			t.Errorf("with a machine of kind %s, the table is\n%s", kind, table)
		}
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
