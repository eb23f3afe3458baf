package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Limits of what runs on a machine that may hang.
const (
	groupLimit = 10 * time.Minute // a group of questions that share disks
	askLimit   = 3 * time.Minute  // one question
	caseLimit  = 5 * time.Minute  // one case of a suite
)

// Options say what to run.
type Options struct {
	// Only limits the questions to those with these IDs. If it is empty, all are asked.
	Only []string
	// Suites also runs the conformance suite and the tests of the leaves.
	Suites bool
	// Program is the version of the program, as the document shows it.
	Program string
	// Began is when the run began, as the document shows it.
	Began string
	// Progress is told of each step, after it has ended.
	Progress func(Step)
}

// cannotTell is why a question is not asked, if nothing else is known.
const cannotTell = "this machine cannot tell"

// Step is a question or a case that has ended.
type Step struct {
	Number  int    // of the step
	Most    int    // is how many there are, at most
	Name    string // a question's ID, or suite/case
	Outcome string
	Detail  string // the facts, or the reason
}

// Run asks a machine. When ctx ends, the questions that are left are not asked.
func Run(ctx context.Context, site *Site, o Options) (answer.Document, error) {
	r := &run{Site: site, options: o, answers: map[string]answer.Answer{}}
	if err := r.open(); err != nil {
		return answer.Document{}, err
	}
	r.most = r.steps()
	for _, g := range groups {
		r.runGroup(ctx, g)
	}
	if o.Suites {
		r.runSuites(ctx)
	}
	doc := answer.Document{
		Format: answer.Format, Program: o.Program, Began: o.Began,
		Machine: site.About, Cases: r.cases,
	}
	for _, q := range question.All() {
		doc.Answers = append(doc.Answers, r.settle(ctx, q))
	}
	return doc, nil
}

// settle returns the answer to a question, also if it was not asked.
func (r *run) settle(ctx context.Context, q question.Question) answer.Answer {
	a, asked := r.answers[q.ID]
	switch {
	case asked:
		return a
	case q.NotAsked != "":
		a.Reason = q.NotAsked
	case len(r.options.Only) > 0 && !r.wanted(q.ID):
		a.Reason = "the operator asked for other questions"
	case ctx.Err() != nil:
		a.Reason = "the run was interrupted"
	case ByCases(q.ID) && !r.options.Suites:
		a.Reason = "the conformance suite was not run"
	default:
		a.Reason = cannotTell
	}
	a.ID, a.Status = q.ID, answer.NotAsked
	return a
}

// run is one run on a machine.
type run struct {
	*Site

	options Options
	most    int         // steps
	machine win.Machine // changes disks of ours only
	disks   disk.Interface
	volumes volume.Interface
	files   filesystem.Interface

	mu      sync.Mutex // a case that hangs goes on beside the others
	own     []Disk
	names   int
	done    int
	answers map[string]answer.Answer
	cases   []answer.Case
}

func (r *run) open() error {
	r.machine = guardedMachine{r.Machine, r}
	var err error
	if r.disks, err = disk.New(diskapi.NewOn(r.machine)); err != nil {
		return err
	}
	if r.volumes, err = volume.New(volumeapi.NewOn(r.machine)); err != nil {
		return err
	}
	r.files, err = filesystem.New(fsapi.NewOn(r.machine))
	return err
}

// steps is how many questions and cases the run has, at most.
func (r *run) steps() (n int) {
	for _, q := range question.All() {
		if q.NotAsked == "" && r.wanted(q.ID) && (r.options.Suites || !ByCases(q.ID)) {
			n++
		}
	}
	if r.options.Suites {
		n += len(r.allCases())
	}
	return n
}

func (r *run) progress(name, outcome, detail string) {
	r.mu.Lock()
	r.done++
	done := r.done
	r.mu.Unlock()
	if r.options.Progress != nil {
		r.options.Progress(Step{done, max(done, r.most), name, outcome, detail})
	}
}

// group is a number of questions that share what they need, such as a disk.
type group struct {
	name string
	ids  []string
	run  func(*bench)
}

func (r *run) wanted(id string) bool {
	return len(r.options.Only) == 0 || slices.Contains(r.options.Only, id)
}

// runGroup asks the questions of a group. If what they share cannot be made, none of them is asked.
func (r *run) runGroup(ctx context.Context, g group) {
	if ctx.Err() != nil || !slices.ContainsFunc(g.ids, r.wanted) {
		return
	}
	result := trial.Run(ctx, g.name, r.TempDir, groupLimit, func(t trial.T) {
		b := &bench{T: t, run: r}
		b.dir = b.newDir()
		g.run(b)
	})
	for _, id := range g.ids {
		r.mu.Lock()
		_, asked := r.answers[id]
		r.mu.Unlock()
		if asked || !r.wanted(id) {
			continue
		}
		a := answer.Answer{ID: id, Status: answer.NotAsked, Reason: result.Reason, Evidence: result.Log}
		if result.Outcome == trial.Failed {
			a.Status = answer.Failed
		}
		if a.Reason == "" {
			a.Reason = cannotTell
		}
		r.keep(a)
	}
	if result.Outcome == trial.Failed {
		r.progress(g.name, string(answer.Failed), result.Reason)
	}
}

// keep keeps an answer. One without a value, such as of a machine without disks, is none.
func (r *run) keep(a answer.Answer) {
	if a.Status == answer.Answered && a.Empty() {
		a.Status, a.Reason = answer.NotAsked, cannotTell
	}
	r.mu.Lock()
	r.answers[a.ID] = a
	r.mu.Unlock()
	detail := a.Text()
	if detail == "" {
		detail = answer.Texts(a.Measured)
	}
	if a.Status != answer.Answered {
		detail = a.Reason
	}
	r.progress(a.ID, string(a.Status), detail)
}

// bench is what the questions of a group share.
type bench struct {
	trial.T
	*run

	dir string // a new directory
}

// Ask is a question that is being asked. Fatal and Skip end it.
type Ask struct {
	trial.T

	mu     sync.Mutex
	answer answer.Answer
}

// ask asks one question of the group. Whatever happens to it, the next one can be asked.
func (b *bench) ask(id string, do func(*Ask)) {
	b.Helper()
	if !b.wanted(id) || b.Context().Err() != nil {
		return
	}
	a := &Ask{answer: answer.Answer{ID: id, Status: answer.Answered}}
	result := trial.Run(b.Context(), id, b.TempDir(), askLimit, func(t trial.T) {
		a.T = t
		do(a)
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	switch result.Outcome {
	case trial.Failed:
		a.answer.Status, a.answer.Reason = answer.Failed, result.Reason
	case trial.Skipped:
		a.answer.Status, a.answer.Reason = answer.NotAsked, result.Reason
	case trial.Passed:
	}
	a.answer.Evidence = append(a.answer.Evidence, result.Log...)
	b.keep(a.answer)
}

// Fact adds a fact, which is equal on equal machines.
func (a *Ask) Fact(name string, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer.Facts = append(a.answer.Facts, answer.Fact{Name: name, Value: text(value)})
}

// Measured adds a value that differs from run to run.
func (a *Ask) Measured(name string, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer.Measured = append(a.answer.Measured, answer.Fact{Name: name, Value: text(value)})
}

// Must ends the question if err is one. A *CannotError means that it is not asked.
func (a *Ask) Must(err error) {
	a.Helper()
	must(a.T, err)
}

func (b *bench) must(err error) {
	b.Helper()
	must(b.T, err)
}

func must(t trial.T, err error) {
	t.Helper()
	if reason, ok := cannot(err); ok {
		t.Skip(reason)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newDir makes a directory that is removed after the group, with what is in it.
func (b *bench) newDir() string {
	b.Helper()
	r := b.run
	r.mu.Lock()
	r.names++
	name := fmt.Sprintf("questions-%d", r.names)
	r.mu.Unlock()
	ctx := b.Context()
	root, err := b.machine.OpenDirectory(ctx, win.Following(b.Root))
	b.must(err)
	defer root.Close()
	b.must(root.CreateDirectory(ctx, name))
	path := b.Root + `\` + name
	b.Cleanup(func() {
		request := &filesystem.RmdirRequest{Path: path, Force: true}
		if _, err := b.files.Rmdir(context.WithoutCancel(ctx), request); err != nil {
			b.Errorf("a directory is left behind: %v", err)
		}
	})
	return path
}

// needVirtual skips the group if disks cannot be detached, grown and copied.
func (b *bench) needVirtual() {
	b.Helper()
	if !b.FileBacked {
		b.Skip("only virtual disks can be detached, grown and copied")
	}
}

// newDisk attaches an empty disk that is removed after the group.
func (b *bench) newDisk(sectorSize uint32) Disk {
	b.Helper()
	d, err := b.run.newDisk(b.T, sectorSize)
	b.must(err)
	return d
}

// newDisk attaches an empty disk that is removed when t has ended.
func (r *run) newDisk(t trial.T, sectorSize uint32) (Disk, error) {
	d, err := r.NewDisk(t.Context(), sectorSize)
	if err != nil {
		return nil, err
	}
	r.keepDisk(t, d)
	return d, nil
}

// keepDisk makes a disk one of ours, until it is removed when t has ended.
func (r *run) keepDisk(t trial.T, d Disk) {
	r.mu.Lock()
	r.own = append(r.own, d)
	r.mu.Unlock()
	t.Cleanup(func() {
		if err := d.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("a disk is left behind: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.own = slices.DeleteFunc(r.own, func(other Disk) bool { return other == d })
	})
}

// disk returns a disk of ours by its number.
func (r *run) disk(number uint32) (Disk, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.own {
		if d.Attached() && d.Number() == number {
			return d, nil
		}
	}
	return nil, fmt.Errorf("disk %d is not one that this run may change: %w", number, winerr.AccessDenied)
}

// missingDisk and missingVolume are what no machine has.
const (
	missingDisk   = 4_000_000
	missingVolume = `\\?\Volume{00000000-0000-4000-8000-000000000001}\`
)
