package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// shown are the questions that cases of the conformance suite answer.
var shown = map[string][]string{
	"Q-symlink": {
		"filesystem/CreateSymlink links a directory and may be repeated",
		"filesystem/IsSymlink has four answers",
	},
	"Q-mounted-folder": {"filesystem/IsSymlink sees a mounted folder until its volume is gone"},
	"Q-rmdir-link": {
		"filesystem/Rmdir removes a link and keeps its target",
		"filesystem/Rmdir of a mounted folder unmounts and keeps the volume's content",
	},
	"Q-rmdir-tree": {"filesystem/Rmdir of a tree stops at links and mounted folders inside"},
}

// ByCases reports whether cases of the suites answer a question.
func ByCases(id string) bool { return shown[id] != nil || id == "Q-pipe-tests" || id == "Q-vhdx" }

// runSuites runs the conformance suite over the library, and the tests of the leaves. Then it answers
// the questions that cases answer.
func (r *run) runSuites(ctx context.Context) {
	for _, c := range r.allCases() {
		r.runCase(ctx, c.suite, c.name, c.run)
	}
	if ctx.Err() == nil {
		r.answerByCases()
	}
}

// aCase is a case of any suite.
type aCase struct {
	suite, name string
	run         func(trial.T)
}

// allCases are the cases of all suites, in the order in which they run.
func (r *run) allCases() (all []aCase) {
	for _, suite := range r.Leaves {
		for _, c := range suite.Cases {
			all = append(all, aCase{suite.Name, c.Name, c.Run})
		}
	}
	for _, c := range hosttest.FilesystemCases() {
		all = append(all, aCase{"filesystem", c.Name, func(t trial.T) { c.Run(t, r.filesystemNode) }})
	}
	for _, sectors := range []uint32{512, 4096} {
		for _, c := range hosttest.DiskCases() {
			all = append(all, aCase{fmt.Sprintf("disk, %d-byte sectors", sectors), c.Name, func(t trial.T) {
				c.Run(t, func(t trial.T) hosttest.DiskNode { return r.diskNode(t, sectors) })
			}})
		}
		for _, c := range hosttest.VolumeCases() {
			all = append(all, aCase{fmt.Sprintf("volume, %d-byte sectors", sectors), c.Name, func(t trial.T) {
				c.Run(t, func(t trial.T) hosttest.VolumeNode { return r.volumeNode(t, sectors) })
			}})
		}
	}
	return all
}

func (r *run) runCase(ctx context.Context, suite, name string, do func(trial.T)) {
	if ctx.Err() != nil {
		return
	}
	if why := r.Cannot[name]; why != "" {
		do = func(t trial.T) { t.Skip(why) }
	}
	result := trial.Run(ctx, name, r.TempDir, caseLimit, do)
	c := answer.Case{Suite: suite, Name: name, Outcome: result.Outcome, Reason: result.Reason}
	if result.Outcome == trial.Failed {
		c.Log = result.Log
	}
	r.cases = append(r.cases, c)
	r.progress(suite+"/"+name, string(result.Outcome), result.Reason)
}

// answerByCases answers the questions that cases answer.
func (r *run) answerByCases() {
	for id, names := range shown {
		if !r.wanted(id) {
			continue
		}
		a := answer.Answer{ID: id, Status: answer.Answered}
		for _, c := range r.cases {
			if !slices.Contains(names, c.Suite+"/"+c.Name) {
				continue
			}
			if c.Outcome == trial.Skipped {
				a.Status, a.Reason = answer.NotAsked, c.Reason
			}
			a.Facts = append(a.Facts, answer.Fact{Name: c.Name, Value: string(c.Outcome)})
			if c.Outcome == trial.Failed {
				a.Evidence = append(a.Evidence, c.Log...)
			}
		}
		if a.Status == answer.NotAsked {
			a.Facts = nil
		}
		r.keep(a)
	}
	if pipes := r.outcomes("pipe"); r.wanted("Q-pipe-tests") && pipes != "" {
		r.keep(answer.Answer{ID: "Q-pipe-tests", Status: answer.Answered, Facts: []answer.Fact{{Name: "tests that failed", Value: pipes}}})
	}
	switch {
	case !r.wanted("Q-vhdx"):
	case !r.FileBacked:
		r.keep(answer.Answer{ID: "Q-vhdx", Status: answer.NotAsked, Reason: "the cases ran on disks that were named, not on virtual ones"})
	default:
		a := answer.Answer{ID: "Q-vhdx", Status: answer.Answered}
		counts := map[trial.Outcome]int{}
		for _, c := range r.cases {
			counts[c.Outcome]++
		}
		a.Facts = []answer.Fact{{Name: "cases that failed", Value: r.outcomes("")}}
		a.Measured = []answer.Fact{{Name: "cases", Value: fmt.Sprintf("%d passed, %d failed, %d skipped", counts[trial.Passed], counts[trial.Failed], counts[trial.Skipped])}}
		r.keep(a)
	}
}

// outcomes names the cases of a suite that failed, or of all suites. It is empty without cases.
func (r *run) outcomes(suite string) string {
	text := ""
	for _, c := range r.cases {
		if suite != "" && c.Suite != suite {
			continue
		}
		if text == "" {
			text = "none"
		}
		if c.Outcome == trial.Failed {
			text = strings.TrimPrefix(text+", "+c.Suite+"/"+c.Name, "none, ")
		}
	}
	return text
}

// caseDisk attaches an empty disk for a case. A machine that has none skips the case.
func (r *run) caseDisk(t trial.T, sectorSize uint32) Disk {
	t.Helper()
	d, err := r.newDisk(t, sectorSize)
	must(t, err)
	return d
}

func (r *run) diskNode(t trial.T, sectorSize uint32) hosttest.DiskNode {
	t.Helper()
	ctx := t.Context()
	empty, other := r.caseDisk(t, sectorSize), r.caseDisk(t, sectorSize)
	node := hosttest.DiskNode{
		API:       r.disks,
		Empty:     empty.Number(),
		EmptySize: empty.Size(),
		Others:    []uint32{other.Number()},
		Missing:   missingDisk,
		// No System: if the refusal failed, the machine would be lost.
		Content: r.Content,
		Volumes: func(number uint32) ([]string, error) {
			ids, err := r.settledVolumesOn(ctx, number)
			var texts []string
			for _, id := range ids {
				texts = append(texts, string(id))
			}
			return texts, err
		},
		Grow: func(number uint32, size int64) (uint32, error) { return r.grow(t, number, size) },
	}
	if r.FileBacked {
		node.Unlocated = []uint32{empty.Number(), other.Number()}
	}
	// What a disk of a Linux pod begins with, and Windows takes for nothing.
	sector := make([]byte, sectorSize)
	copy(sector, "XFSB")
	used := r.caseDisk(t, sectorSize)
	must(t, used.Write(ctx, 0, sector))
	node.Suspect = map[string]uint32{"XFS": used.Number()}
	return node
}

func (r *run) volumeNode(t trial.T, sectorSize uint32) hosttest.VolumeNode {
	t.Helper()
	ctx := t.Context()
	empty, other := r.caseDisk(t, sectorSize), r.caseDisk(t, sectorSize)
	var lacks []string
	if r.NoLinks != "" {
		lacks = append(lacks, "mounted folders")
	}
	return hosttest.VolumeNode{
		Lacks:       lacks,
		API:         r.volumes,
		Disks:       r.disks,
		Root:        r.caseDir(t),
		Empty:       [2]uint32{empty.Number(), other.Number()},
		EmptySize:   empty.Size(),
		MissingDisk: missingDisk,
		Missing:     missingVolume,
		WriteFile:   r.WriteFile,
		ReadFile:    r.ReadFile,
		Symlink: func(path, target string) error {
			_, err := r.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: target, TargetPath: path})
			return err
		},
		Grow: func(number uint32, size int64) (uint32, error) { return r.grow(t, number, size) },
		Detach: func(number uint32) error {
			d, err := r.disk(number)
			if err != nil {
				return err
			}
			err = d.Detach(ctx)
			if reason, ok := cannot(err); ok {
				t.Skip(reason)
			}
			return err
		},
		// No Content: NTFS writes to its volumes when it likes.
	}
}

func (r *run) filesystemNode(t trial.T) hosttest.FilesystemNode {
	t.Helper()
	ctx := t.Context()
	var d Disk // most cases need none
	var id win.VolumeID
	return hosttest.FilesystemNode{
		API:         r.files,
		Root:        r.caseDir(t),
		WriteFile:   r.WriteFile,
		ReadFile:    r.ReadFile,
		LongestPath: r.LongestPath,
		NoLinks:     r.NoLinks,
		MountVolume: func(path string) error {
			if r.NoLinks != "" {
				t.Skip(r.NoLinks)
			}
			if d == nil {
				d = r.caseDisk(t, 512)
				id = r.newFormatted(t, d)
			}
			_, err := r.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: string(id), TargetPath: path})
			return err
		},
		LoseVolume: func() error {
			err := d.Detach(ctx)
			if reason, ok := cannot(err); ok {
				t.Skip(reason)
			}
			return err
		},
	}
}

// caseDir makes a directory that is removed after the case.
func (r *run) caseDir(t trial.T) string {
	t.Helper()
	return (&bench{T: t, run: r}).newDir()
}

// grow enlarges a disk, and returns the number that it has then.
func (r *run) grow(t trial.T, number uint32, size int64) (uint32, error) {
	t.Helper()
	d, err := r.disk(number)
	if err != nil {
		return 0, err
	}
	volumes, err := r.volumesOn(t.Context(), number)
	if err != nil {
		return 0, err
	}
	how, err := d.Grow(t.Context(), size)
	if reason, ok := cannot(err); ok {
		t.Skip(reason)
	}
	if err != nil {
		return 0, err
	}
	t.Logf("disk %d has grown to %d bytes: %s; it is disk %d", number, size, how, d.Number())
	_, err = r.await(t.Context(), func() error {
		back, err := r.volumesOn(t.Context(), d.Number())
		if err == nil && len(back) < len(volumes) {
			err = fmt.Errorf("disk %d has grown and lost volumes: %q, want %q", d.Number(), back, volumes)
		}
		return err
	})
	return d.Number(), err
}
