package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

const pods = `C:\var\lib\kubelet\outside`

// kubelet uses a machine, and changes its files beside the calls.
type kubelet struct {
	*testing.T

	node *winsim.Node
	m    win.Machine
}

// ask is FileInfo of a path, as often as wanted.
func (k kubelet) ask(times int, path string) {
	for range times {
		_, _ = k.m.FileInfo(k.Context(), win.Anywhere(path))
	}
}

// in calls something in a directory.
func (k kubelet) in(path string, do func(dir win.Directory)) {
	k.Helper()
	dir, err := k.m.OpenDirectory(k.Context(), win.Following(path))
	if err != nil {
		k.Fatal(err)
	}
	defer dir.Close()
	do(dir)
}

// list lists directories below pods.
func (k kubelet) list(names ...string) {
	k.Helper()
	k.in(pods, func(dir win.Directory) {
		for _, name := range names {
			_ = dir.ListDirectory(k.Context(), name, func(win.Tree, []win.DirEntry) error { return nil })
		}
	})
}

// mkdir makes a directory in pods.
func (k kubelet) mkdir() {
	k.Helper()
	k.in(pods, func(dir win.Directory) { k.must(dir.CreateDirectory(k.Context(), "a")) })
}

func (k kubelet) remove(name string) {
	k.in(pods, func(dir win.Directory) { _ = dir.Remove(k.Context(), name) })
}

func (k kubelet) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// recordKubelet records what use does. It returns the recording as one of the emulator, and as one of a machine.
func recordKubelet(t *testing.T, use func(k kubelet)) map[string][]byte {
	t.Helper()
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	node := must(winsim.New(model))
	text := recorded(t, node, record.Options{}, func(m win.Machine) {
		if err := m.CreateDirectory(t.Context(), win.Anywhere(pods)); err != nil {
			t.Fatal(err)
		}
		use(kubelet{t, node, m})
	})
	return map[string][]byte{"emulated": text, "machine": withoutSnapshot(t, text)}
}

// TestCompare_Outside: other programs change files while calls are recorded. It is no difference if two calls
// tell of it.
func TestCompare_Outside(t *testing.T) {
	for _, test := range []struct {
		name string
		use  func(k kubelet)
		want []string // what was done to which file below pods
	}{
		{"nothing", func(k kubelet) { k.mkdir(); k.ask(3, pods+`\a`); k.remove("a"); k.ask(2, pods+`\a`) }, nil},
		{"directory made", func(k kubelet) { k.ask(2, pods+`\a`); k.must(k.node.Mkdir(pods + `\a`)); k.ask(2, pods+`\a`) }, []string{`made the directory \a`}},
		{"file made", func(k kubelet) { k.ask(2, pods+`\a`); k.must(k.node.WriteFile(pods+`\a`, "x")); k.ask(2, pods+`\a`) }, []string{`made the file \a`}},
		{"made with its parents", func(k kubelet) { k.must(k.node.Mkdir(pods + `\a\b\c`)); k.ask(2, pods+`\a\b\c`); k.ask(1, pods+`\a`) }, []string{`made the directory \a\b`, `made the directory \a\b\c`}},
		{"made and removed by a call", func(k kubelet) {
			k.must(k.node.WriteFile(pods+`\a`, "x"))
			k.list("")
			k.remove("a")
			k.ask(2, pods+`\a`)
		}, []string{`made the file \a`}},
		{"removed", func(k kubelet) { k.mkdir(); k.must(k.node.RemoveAll(pods + `\a`)); k.ask(2, pods+`\a`) }, []string{`removed \a`}},
		{"removed, and made by a call", func(k kubelet) {
			k.mkdir()
			k.must(k.node.RemoveAll(pods + `\a`))
			k.ask(1, pods+`\a`)
			k.mkdir()
			k.ask(1, pods+`\a`)
		}, []string{`removed \a`}},
		{"removed with its content, and made by a call", func(k kubelet) {
			k.mkdir()
			k.in(pods+`\a`, func(dir win.Directory) { k.must(dir.CreateDirectory(k.Context(), "b")) })
			k.must(k.node.RemoveAll(pods + `\a`))
			k.mkdir()
			k.list("a")
		}, []string{`removed \a`}},
		{"removed on the way", func(k kubelet) {
			k.mkdir()
			k.ask(1, pods+`\a\b\c`)
			k.must(k.node.RemoveAll(pods))
			k.ask(2, pods+`\a`)
			k.ask(2, pods)
		}, []string{`removed `}},
		{"in lists", func(k kubelet) {
			k.list("")
			k.must(k.node.Mkdir(pods + `\a`))
			k.must(k.node.WriteFile(pods+`\b`, "x"))
			k.list("", "")
			k.must(k.node.RemoveAll(pods + `\a`))
			k.list("", "")
		}, []string{`made the directory \a`, `made the file \b`, `removed \a`}},
		{"made after a list of a directory that was there", func(k kubelet) {
			k.in(`C:\var\lib\kubelet`, func(dir win.Directory) {
				k.must(dir.ListDirectory(k.Context(), "", func(win.Tree, []win.DirEntry) error { return nil }))
			})
			k.must(k.node.WriteFile(`C:\var\lib\kubelet\new`, "x"))
			k.ask(2, `C:\var\lib\kubelet\new`)
		}, []string{`made the file C:\var\lib\kubelet\new`}},
		{"link made", func(k kubelet) {
			k.must(k.node.Junction(pods+`\a`, `C:\Windows`))
			k.ask(1, pods+`\a`)
			k.in(pods, func(dir win.Directory) {
				_ = must(dir.ReparsePoint(k.Context(), "a"))
				k.must(dir.Remove(k.Context(), "a"))
			})
		}, []string{`made the link \a`}},
		{"link of which no call tells more", func(k kubelet) {
			k.must(k.node.Symlink(pods+`\a`, `C:\Windows`))
			k.list("", "")
			k.remove("a")
			k.list("")
		}, []string{`made the link \a`}},
		{"directory becomes a link", func(k kubelet) {
			k.mkdir()
			k.ask(1, pods+`\a`)
			k.must(k.node.RemoveAll(pods + `\a`))
			k.must(k.node.Symlink(pods+`\a`, `C:\Windows`))
			k.ask(1, pods+`\a`)
			k.in(pods, func(dir win.Directory) { _ = must(dir.ReparsePoint(k.Context(), "a")) })
		}, []string{`made the link \a`}},
		{"behind a link of a call", func(k kubelet) {
			k.mkdir()
			k.in(pods, func(dir win.Directory) { k.must(dir.CreateDirectoryLink(k.Context(), "link", pods+`\a`)) })
			k.must(k.node.WriteFile(pods+`\a\b`, "x"))
			k.ask(1, pods+`\link\b`)
			k.ask(1, pods+`\a\b`)
		}, []string{`made the file \a\b`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for kind, text := range recordKubelet(t, test.use) {
				report := must(replay.Compare(t.Context(), bytes.NewReader(text)))
				for _, d := range report.Differences {
					t.Errorf("%s: %s", kind, d)
				}
				var got []string
				for _, c := range report.Outside {
					got = append(got, c.What+" "+strings.TrimPrefix(c.Path, pods))
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("%s: other programs %q, want %q", kind, got, test.want)
				}
			}
		})
	}
}

// TestCompare_OutsideOnce: one call alone is not believed. It is the one difference.
func TestCompare_OutsideOnce(t *testing.T) {
	for name, use := range map[string]func(k kubelet){
		"made": func(k kubelet) { k.must(k.node.Mkdir(pods + `\a`)); k.ask(1, pods+`\a`) },
		"made for a moment": func(k kubelet) {
			k.must(k.node.Mkdir(pods + `\a`))
			k.ask(1, pods+`\a`)
			k.must(k.node.RemoveAll(pods + `\a`))
			k.ask(3, pods+`\a`)
		},
		"removed": func(k kubelet) { k.mkdir(); k.must(k.node.RemoveAll(pods + `\a`)); k.ask(1, pods+`\a`) },
		"removed before it was to be removed": func(k kubelet) {
			k.mkdir()
			k.must(k.node.RemoveAll(pods + `\a`))
			k.remove("a")
			k.ask(2, pods+`\a`)
		},
		"made before it was to be made": func(k kubelet) {
			k.must(k.node.Mkdir(pods + `\a`))
			k.in(pods, func(dir win.Directory) { _ = dir.CreateDirectory(k.Context(), "a") })
			k.ask(2, pods+`\a`)
		},
		"in a list": func(k kubelet) { k.must(k.node.Mkdir(pods + `\a`)); k.list("") },
		"held": func(k kubelet) {
			k.must(k.node.WriteFile(pods+`\a`, "x"))
			release := must(k.node.Hold(pods + `\a`))
			k.remove("a")
			release()
			k.remove("a")
			k.ask(1, pods+`\a`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, text := range recordKubelet(t, use) {
				if report := must(replay.Compare(t.Context(), bytes.NewReader(text))); len(report.Differences) != 1 {
					t.Errorf("%s: the differences are %v, want one; other programs: %v", kind, report.Differences, report.Outside)
				}
			}
		})
	}
}

// TestCompare_OutsideOwn: if the next call finds something else than the node has just made, and not nothing, the
// node is wrong, and no other program has changed it.
func TestCompare_OutsideOwn(t *testing.T) {
	texts := recordKubelet(t, func(k kubelet) { k.mkdir(); k.ask(2, pods+`\a`); k.remove("a"); k.ask(2, pods+`\a`) })
	for kind, text := range texts {
		planted := strings.ReplaceAll(string(text), `{"Directory":true,"ReadOnly":false,"Tag":0}`, `{"Directory":true,"ReadOnly":false,"Tag":2684354563}`)
		report := must(replay.Compare(t.Context(), strings.NewReader(planted)))
		if len(report.Differences) == 0 || len(report.Outside) > 0 {
			t.Errorf("%s: a directory is a link at once: differences %v, other programs %v", kind, report.Differences, report.Outside)
		}
	}
}

// plants are other answers to a call about a file.
func plants(c record.Call) (planted []record.Call) {
	plant := func(change func(*record.Call)) {
		other := c
		change(&other)
		planted = append(planted, other)
	}
	out := func(value string) func(*record.Call) {
		return func(c *record.Call) { c.Out, c.Error = json.RawMessage(value), nil }
	}
	for _, code := range []uint32{2, 3, 32, 145, 183} {
		if c.Error == nil || c.Error.Windows != code {
			plant(func(c *record.Call) { c.Out, c.Error = nil, &record.Failure{Windows: code} })
		}
	}
	switch c.Method {
	case "FileInfo":
		for _, value := range []string{`{"Directory":true,"ReadOnly":false,"Tag":0}`, `{"Directory":false,"ReadOnly":false,"Tag":0}`, `{"Directory":true,"ReadOnly":false,"Tag":2684354572}`, `{"Directory":true,"ReadOnly":true,"Tag":0}`} {
			if string(c.Out) != value {
				plant(out(value))
			}
		}
	case "ReparsePoint":
		plant(out(`{"Tag":2684354572,"Substitute":"\\??\\C:\\elsewhere","Print":"C:\\elsewhere","Relative":false}`))
	case "CreateDirectory", "CreateDirectoryLink", "Remove":
		if c.Error != nil {
			plant(func(c *record.Call) { c.Error = nil })
		}
	case "ListDirectory":
		var list struct {
			Directory int `json:",omitzero"`
			Batches   [][]win.DirEntry
		}
		if c.Error != nil || json.Unmarshal(c.Out, &list) != nil || list.Directory == 0 {
			break
		}
		more := slices.Concat(list.Batches...)
		for i := range more {
			fewer := list
			fewer.Batches = [][]win.DirEntry{slices.Delete(slices.Clone(more), i, i+1)}
			plant(out(string(must(json.Marshal(fewer)))))
		}
		list.Batches = [][]win.DirEntry{append(slices.Clone(more), win.DirEntry{Name: "planted"})}
		plant(out(string(must(json.Marshal(list)))))
	}
	return planted
}

// TestCompare_PlantedFiles: each answer about a file in turn is replaced by others. Each shows, and nothing else,
// also if other programs change other files meanwhile.
func TestCompare_PlantedFiles(t *testing.T) {
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprintf("others %t", others), func(t *testing.T) {
			other := func(k kubelet, do func()) {
				if others {
					do()
					k.ask(2, pods+`\extra`)
				}
			}
			text := recordKubelet(t, func(k kubelet) {
				k.ask(2, pods+`\a`)
				k.mkdir()
				k.ask(2, pods+`\a`)
				k.in(pods, func(dir win.Directory) {
					_ = dir.CreateDirectory(k.Context(), "a")
					k.must(dir.CreateDirectoryLink(k.Context(), "link", `C:\Windows`))
					_ = must(dir.ReparsePoint(k.Context(), "link"))
					_, _ = dir.ReparsePoint(k.Context(), "a")
				})
				other(k, func() { k.must(k.node.WriteFile(pods+`\extra`, "x")) })
				k.list("", "", "a", "a")
				k.ask(2, pods+`\none\below`)
				k.in(pods+`\a`, func(dir win.Directory) { k.must(dir.CreateDirectory(k.Context(), "below")) })
				k.ask(1, pods+`\a\below`)
				k.remove("a")
				other(k, func() { k.must(k.node.RemoveAll(pods + `\extra`)) })
				k.in(pods+`\a`, func(dir win.Directory) { k.must(dir.Remove(k.Context(), "below")) })
				k.remove("a")
				k.remove("link")
				k.ask(2, pods+`\a`)
				k.list("", "")
			})["emulated"]
			plantAll(t, text, map[bool]int{false: 0, true: 2}[others])
		})
	}
}

// plantAll plants other answers in a recording with some changes by other programs.
func plantAll(t *testing.T, text []byte, changes int) {
	t.Helper()
	if report := must(replay.Compare(t.Context(), bytes.NewReader(text))); len(report.Differences) > 0 || len(report.Outside) != changes {
		t.Fatalf("differences %v, other programs %v", report.Differences, report.Outside)
	}
	lines, count := bytes.SplitAfter(text, []byte("\n")), 0
	for i, line := range lines {
		var l struct{ Call *record.Call }
		if json.Unmarshal(line, &l) != nil || l.Call == nil || l.Call.Method == "Close" || l.Call.Method == "OpenDirectory" || bytes.Contains(line, []byte(`"extra"`)) {
			continue
		}
		for _, planted := range plants(*l.Call) {
			count++
			other := slices.Clone(lines)
			other[i] = append(must(json.Marshal(map[string]any{"call": planted})), '\n')
			report := must(replay.Compare(t.Context(), bytes.NewReader(bytes.Join(other, nil))))
			shown := slices.ContainsFunc(report.Differences, func(d replay.Difference) bool { return d.Call == planted.Seq })
			alone := !slices.ContainsFunc(report.Differences, func(d replay.Difference) bool { return d.Call != planted.Seq })
			if !shown || !alone {
				t.Errorf("for %sthere is %s%v: differences %v, other programs %v", line, planted.Out, planted.Error, report.Differences, report.Outside)
			}
		}
	}
	if count < 100 {
		t.Errorf("%d answers were planted", count)
	}
}

// TestCompare_BeforeDescription: calls that ended before the machine was described tell nothing about it.
func TestCompare_BeforeDescription(t *testing.T) {
	texts := recordKubelet(t, func(k kubelet) { k.ask(2, `C:\var\lib\kubelet\a`) })
	for kind, text := range texts {
		lines := bytes.SplitAfter(text, []byte("\n"))
		lines[1] = bytes.Replace(lines[1], []byte(`"Seq":0`), []byte(`"Seq":2`), 1)
		report := must(replay.Compare(t.Context(), bytes.NewReader(bytes.Join(lines, nil))))
		if report.Calls != 1 || len(report.Differences) > 0 || len(report.Notes) != 1 || !strings.HasPrefix(report.Notes[0], "2 calls are from before the description") {
			t.Errorf("%s: %+v", kind, report)
		}
	}
}

// TestCompare_Many: what is done per call does not grow with the number of calls. Otherwise this test would not
// end.
func TestCompare_Many(t *testing.T) {
	const count = 2_000
	var out bytes.Buffer
	texts := recordKubelet(t, func(kubelet) {})
	out.Write(texts["machine"])
	for i := range count {
		seq := 10 + i*5
		path := must(json.Marshal(win.Anywhere(fmt.Sprintf(`C:\var\lib\kubelet\outside\%d\x`, i/2))))
		link := must(json.Marshal(win.Anywhere(fmt.Sprintf(`C:\links\%d`, i/2))))
		fmt.Fprintf(&out, `{"call":{"seq":%d,"method":"FileInfo","in":{"path":%s},"out":{"Directory":true,"ReadOnly":false,"Tag":0}}}`+"\n", seq, path)
		fmt.Fprintf(&out, `{"call":{"seq":%d,"method":"FileInfo","in":{"path":%s},"error":{"windows":%d}}}`+"\n", seq+1, path, 2+i%2)
		fmt.Fprintf(&out, `{"call":{"seq":%d,"method":"ReparsePoint","in":{"path":%s},"out":{"Tag":2684354572,"Substitute":"\\??\\C:\\x","Print":"C:\\x"}}}`+"\n", seq+2, link)
		fmt.Fprintf(&out, `{"call":{"seq":%d,"method":"FileInfo","in":{"path":{"Base":"C:\\var","Rest":"same"}},"out":{"Directory":%t,"ReadOnly":false,"Tag":0}}}`+"\n", seq+3, i/2%2 == 0)
	}
	report := must(replay.Compare(t.Context(), &out))
	if report.Calls != 4*count+1 || len(report.Outside) == 0 {
		t.Errorf("%d calls were compared, and other programs made %d changes", report.Calls, len(report.Outside))
	}
}

// TestCompare_InUse: a tree that cannot be removed because a program has a file open. The host ends the listing
// with an error, which is not the machine's answer.
func TestCompare_InUse(t *testing.T) {
	const tree = `C:\var\lib\kubelet\pods\1`
	for _, hash := range []bool{false, true} {
		t.Run(fmt.Sprintf("hash=%t", hash), func(t *testing.T) {
			node := newNode(t, "default")
			if err := errors.Join(node.Mkdir(tree+`\a`), node.WriteFile(tree+`\a\held`, "x"), node.WriteFile(tree+`\a\more`, "x")); err != nil {
				t.Fatal(err)
			}
			release := must(node.Hold(tree + `\a\held`))
			defer release()
			remove := func(m win.Machine) error {
				files := must(filesystem.New(fsapi.NewOn(m), filesystem.WorkingDirs(`C:\var\lib\kubelet`)))
				_, err := files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: tree, Force: true})
				return err
			}
			var failure error
			text := recorded(t, node, record.Options{Hash: hash}, func(m win.Machine) { failure = remove(m) })
			if failure == nil || !strings.Contains(failure.Error(), "another process has it open (Windows error 32)") || bytes.Count(text, []byte(`"Stopped":true`)) != 2 {
				t.Fatalf("recorded %v:\n%s", failure, text)
			}
			for name, text := range map[string][]byte{"whole": text, "without the emulator's own state": withoutSnapshot(t, text)} {
				report := must(replay.Compare(t.Context(), bytes.NewReader(text)))
				if len(report.Differences)+len(report.Skipped) > 0 || len(report.Outside) != 1 || report.Outside[0].What != "opened" {
					t.Errorf("%s: differences %v, skipped %v, other programs %v", name, report.Differences, report.Skipped, report.Outside)
				}
			}
			if hash {
				return // a host does not know the hashes
			}
			recording := must(record.Read(bytes.NewReader(text)))
			if err := remove(recording.Player(func(err error) { t.Error(err) })); err == nil || err.Error() != failure.Error() {
				t.Errorf("replayed %v, recorded %v", err, failure)
			}
		})
	}
}
