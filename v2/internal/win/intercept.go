package win

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

//go:generate interceptgen . zintercept.go

// Interceptor is called instead of a method of a machine or of an open directory. next makes the call, and returns
// its error. An interceptor that does not call it answers itself: it sets the result, or fails. What it returns is
// what the caller gets; after an error there is no result. Only next opens directories. Interceptors are called concurrently.
//
// An interceptor may fail while next still runs on another goroutine, or after it has succeeded: it holds the directory
// of the call then (Hold), and discards what next has done (Discard).
type Interceptor func(ctx context.Context, c *Call, next func(context.Context) error) error

// Call is a call of one method.
type Call struct {
	// Method is its name. Methods of a directory can have the name of one of the machine.
	Method string
	// Result points to the result, which next sets. It is nil for methods that return only an error or a directory.
	Result any
	// Resumed is called when a machine lets a call go that it has held. A test decides there when it is carried out.
	Resumed func()

	of      interface{ values() []any } // the arguments; nil without
	names   string                      // of the arguments
	in      *opened
	entry   string
	opens   *opened // what it opens; nil for others
	unmount func()  // of SetMountPoint
}

// call is a call with its arguments and its result in one piece of memory: interceptors must not slow calls down.
type call[P, R any] struct {
	Call
	args   P
	result R
}

// The arguments of a call.
type (
	args1[A any]    struct{ a A }
	args2[A, B any] struct {
		a A
		b B
	}
	args3[A, B, C any] struct {
		a A
		b B
		c C
	}
)

func (p *args1[A]) values() []any       { return []any{p.a} }
func (p *args2[A, B]) values() []any    { return []any{p.a, p.b} }
func (p *args3[A, B, C]) values() []any { return []any{p.a, p.b, p.c} }

// nothing is what a method takes besides the context, or returns besides an error or a directory.
type nothing struct{}

// Arg is an argument by the name of its parameter.
type Arg struct {
	Name  string
	Value any
}

// Args returns the arguments, without the context. They are collected on demand: most calls are only counted.
func (c *Call) Args() (args []Arg) {
	if c.of == nil {
		return nil
	}
	names := strings.Fields(c.names)
	for i, value := range c.of.values() {
		args = append(args, Arg{names[i], value})
	}
	return args
}

// Entry is the path of what a method of a directory is about: that by which the directory was opened, and the name.
// It is empty for methods of a machine.
func (c *Call) Entry() string {
	if c.in == nil {
		return ""
	}
	return (&opened{above: c.in, name: c.entry}).String()
}

// first returns the first argument, which says what the call is about, or nil.
func (c *Call) first() any {
	if c.of == nil {
		return nil
	}
	return c.of.values()[0]
}

// OwnSecrets gives a call that may outlive its caller copies of its secrets. The caller of OwnSecrets wipes them.
func (c *Call) OwnSecrets() (wipe func()) {
	var own *Secret
	switch args := c.of.(type) {
	case *args1[Secret]:
		own = &args.a
	case *args1[Login]:
		own = &args.a.Secret
	case *args1[SMBMappingRequest]:
		own = &args.a.Password
	default:
		return func() {}
	}
	*own = own.Clone()
	return own.Wipe
}

// Hold keeps the directory of a call open until Release, also if its caller closes it.
func (c *Call) Hold() {
	if c.in != nil {
		c.in.users.Add(1)
	}
}

// Release ends Hold.
func (c *Call) Release() {
	if c.in != nil {
		c.in.release()
	}
}

// Discard undoes a call that has succeeded although its caller has got an error: it closes the directory that was opened,
// releases the lock that was taken, and takes away the volume that was mounted. Other calls stay done.
func (c *Call) Discard() {
	if lock, ok := c.Result.(*FormatLock); ok {
		lock.Release()
	}
	if c.opens != nil {
		c.opens.Close()
	}
	if c.unmount != nil {
		c.unmount()
	}
}

// Intercept returns a machine whose calls go through f, also those of the directories that it opens. Now and Sleep
// do not, nor does Close of a directory, which can neither wait nor fail. Without f it is m itself.
func Intercept(m Machine, f Interceptor) Machine {
	if f == nil {
		return m
	}
	return &machine{m, m, f, m}
}

// machine is an intercepted one. Most of its methods are in zintercept.go. It embeds only what is no call, so that a
// method that is missing there does not compile.
type machine struct {
	Clock
	Pending
	f     Interceptor
	below Machine
}

func (m *machine) OpenDirectory(ctx context.Context, path Path) (Directory, error) {
	d := newDirectory(m.f, nil, "", path)
	c := call[args1[Path], nothing]{args: args1[Path]{path}}
	c.Call = Call{Method: "OpenDirectory", of: &c.args, names: "path", opens: &d.opened}
	return d.open(m.f(ctx, &c.Call, func(ctx context.Context) error { return d.found(m.below.OpenDirectory(ctx, c.args.a)) }))
}

// opened is the way by which a directory was opened: by a path, or by a name in another directory. The whole path
// is made on demand: the paths of a deep tree take more memory than the tree.
type opened struct {
	above  *opened
	name   string
	path   Path // without above
	listed bool // it was opened to be listed

	users atomic.Int32         // those who have opened it, and calls that hold it
	below interface{ Close() } // set when it is open
}

func (o *opened) release() {
	if o.users.Add(-1) <= 0 { // less if it is closed twice: the emulated node panics then
		o.below.Close()
	}
}

func (o *opened) String() string {
	var names []string
	for ; o.above != nil; o = o.above {
		if o.name != "" { // a directory lists itself by an empty name
			names = append(names, o.name)
		}
	}
	if len(names) == 0 {
		return o.path.String()
	}
	slices.Reverse(names)
	return winpath.Join(o.path.String(), strings.Join(names, winpath.Separator))
}

// Close closes the directory when no call holds it any more.
func (o *opened) Close() { o.release() }

type tree struct {
	f Interceptor
	opened
	below Tree
}

func (m *tree) ListDirectory(ctx context.Context, name string) (Listing, error) {
	l := &listing{tree: tree{f: m.f, opened: opened{above: &m.opened, name: name, listed: true}}}
	l.users.Store(1)
	c := call[args1[string], nothing]{args: args1[string]{name}}
	c.Call = Call{Method: "ListDirectory", of: &c.args, names: "name", in: &m.opened, entry: name, opens: &l.opened}
	err := m.f(ctx, &c.Call, func(ctx context.Context) error {
		below, err := m.below.ListDirectory(ctx, c.args.a)
		if err == nil {
			l.tree.below, l.below, l.opened.below = below, below, below
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

type listing struct {
	tree
	below Listing
}

func (m *listing) Next(ctx context.Context) ([]DirEntry, error) {
	c := call[nothing, []DirEntry]{}
	c.Call = Call{Method: "Next", Result: &c.result, in: &m.opened}
	err := m.f(ctx, &c.Call, func(ctx context.Context) (err error) {
		c.result, err = m.below.Next(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.result, nil
}

type directory struct {
	tree
	below Directory
}

func newDirectory(f Interceptor, above *opened, name string, path Path) *directory {
	d := &directory{tree: tree{f: f, opened: opened{above: above, name: name, path: path}}}
	d.users.Store(1)
	return d
}

// found takes the directory below.
func (m *directory) found(below Directory, err error) error {
	if err == nil {
		m.tree.below, m.below, m.opened.below = below, below, below
	}
	return err
}

// open returns the directory, unless the call has failed.
func (m *directory) open(err error) (Directory, error) {
	if err != nil {
		return nil, err // found may still set it
	}
	return m, nil
}

func (m *directory) Open(ctx context.Context, name string) (Directory, error) {
	d := newDirectory(m.f, &m.opened, name, Path{})
	c := call[args1[string], nothing]{args: args1[string]{name}}
	c.Call = Call{Method: "Open", of: &c.args, names: "name", in: &m.opened, entry: name, opens: &d.opened}
	return d.open(m.f(ctx, &c.Call, func(ctx context.Context) error { return d.found(m.below.Open(ctx, c.args.a)) }))
}

// SetMountPoint is undone if its caller has left: others may have the folder in use since.
func (m *directory) SetMountPoint(ctx context.Context, name string, volume VolumeID) error {
	c := call[args2[string, VolumeID], nothing]{args: args2[string, VolumeID]{name, volume}}
	c.Call = Call{Method: "SetMountPoint", of: &c.args, names: "name volume", in: &m.opened, entry: name}
	c.unmount = func() { _ = m.below.DeleteMountPoint(context.WithoutCancel(ctx), c.args.a) }
	return m.f(ctx, &c.Call, func(ctx context.Context) error { return m.below.SetMountPoint(ctx, c.args.a, c.args.b) })
}
