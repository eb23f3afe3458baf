package record

import (
	"context"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

//go:generate go run ../../../hack/recordgen .. zmachine.go

// conductor is behind every method of a machine: a Recorder, which makes the call and notes it, or a
// player, which answers from a recording.
type conductor interface {
	// do is called for one call: its arguments, a pointer for the result or nil, and the call itself.
	do(on int, method string, arguments in, result any, call func() error) error
	// handle returns a number for a directory that call has opened.
	handle() int

	win.Clock
}

// in are the arguments of a call, without the context, in order.
type in []argument

type argument struct {
	name  string
	value any
}

// machine is a win.Machine whose calls go through a conductor. Most methods are in zmachine.go.
type machine struct {
	conductor
	below win.Machine // nil in a recorded machine
}

var _ win.Machine = machine{}

// ReadDevice is recorded without zeros.
func (m machine) ReadDevice(ctx context.Context, d win.Device, offset int64, b []byte) error {
	content := buffer(b)
	return m.do(0, "ReadDevice", in{{"d", d}, {"offset", offset}, {"length", len(b)}}, &content, func() error {
		return m.below.ReadDevice(ctx, d, offset, b)
	})
}

// OpenDirectory is recorded with a number for the directory.
func (m machine) OpenDirectory(ctx context.Context, path win.Path) (win.Directory, error) {
	return open(m.conductor, 0, "OpenDirectory", in{{"path", path}}, func() (win.Directory, error) { return m.below.OpenDirectory(ctx, path) })
}

func open(c conductor, on int, method string, arguments in, call func() (win.Directory, error)) (win.Directory, error) {
	opened := directory{tree: tree{conductor: c}}
	err := c.do(on, method, arguments, &opened.number, func() (err error) {
		if opened.below, err = call(); err == nil {
			opened.tree.below, opened.number = opened.below, c.handle()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// tree is a directory whose calls go through a conductor.
type tree struct {
	conductor
	number int
	below  win.Tree
}

// listing is the result of ListDirectory.
type listing struct {
	Directory int `json:",omitzero"` // the number of the directory that was listed, 0 if it was empty
	Batches   [][]win.DirEntry
	Cut       bool `json:",omitzero"` // there were more than maxEntries
	Stopped   bool `json:",omitzero"` // the host wanted no more, so there may be others
}

// maxEntries is how many entries of a directory are recorded.
const maxEntries = 4096

// ListDirectory is recorded with all entries. Calls that each makes are recorded before it. An error of each is
// the host's, and not the machine's answer: it is not recorded.
func (m tree) ListDirectory(ctx context.Context, name string, each func(dir win.Tree, entries []win.DirEntry) error) error {
	var (
		list   listing
		made   bool
		answer error
		count  int
	)
	err := m.do(m.number, "ListDirectory", in{{"name", name}}, &list, func() error {
		made = true
		answer = m.below.ListDirectory(ctx, name, func(dir win.Tree, entries []win.DirEntry) error {
			if list.Directory == 0 {
				list.Directory = m.handle()
			}
			if count += len(entries); count > maxEntries {
				list.Cut = true
			} else {
				list.Batches = append(list.Batches, entries)
			}
			err := each(tree{m.conductor, list.Directory, dir}, entries)
			list.Stopped = list.Stopped || err != nil
			return err
		})
		if list.Stopped {
			return nil
		}
		return answer
	})
	if made {
		return answer
	}
	for _, entries := range list.Batches {
		if err := each(tree{conductor: m.conductor, number: list.Directory}, entries); err != nil {
			return err
		}
	}
	if p, plays := m.conductor.(*player); plays && err == nil && (list.Cut || list.Stopped) {
		return p.fail(fmt.Errorf("ListDirectory %s: the recording has only the first %d entries, and the host wants more", winpath.Quote(name), list.length()))
	}
	return err
}

func (l listing) length() (entries int) {
	for _, batch := range l.Batches {
		entries += len(batch)
	}
	return entries
}

// directory is an open directory whose calls go through a conductor.
type directory struct {
	tree
	below win.Directory
}

var _ win.Directory = directory{}

// Open is recorded with a number for the directory.
func (m directory) Open(ctx context.Context, name string) (win.Directory, error) {
	return open(m.conductor, m.number, "Open", in{{"name", name}}, func() (win.Directory, error) { return m.below.Open(ctx, name) })
}

// Close is recorded.
func (m directory) Close() {
	_ = m.do(m.number, "Close", nil, nil, func() error {
		m.below.Close()
		return nil
	})
}

// Now is not recorded: each call has its time.
func (m machine) Now() time.Time { return m.conductor.Now() }

// Sleep is not recorded either.
func (m machine) Sleep(ctx context.Context, d time.Duration) error { return m.conductor.Sleep(ctx, d) }
