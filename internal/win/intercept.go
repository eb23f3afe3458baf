package win

import (
	"context"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

//go:generate go run ../../hack/interceptgen . zintercept.go

// Interceptor is called instead of a method of a machine or of an open directory. next makes the call, and returns
// its error. An interceptor that does not call it answers itself: it sets the result, or fails. What it returns is
// what the caller gets. Only next opens directories. Interceptors are called concurrently.
type Interceptor func(ctx context.Context, c *Call, next func(context.Context) error) error

// Call is a call of one method.
type Call struct {
	// Method is its name. Methods of a directory can have the name of one of the machine.
	Method string
	// Result points to the result, which next sets. It is nil for methods that return only an error or a directory;
	// for ListDirectory it points to the number of entries, an int.
	Result any

	of    interface{ values() []any } // the arguments; nil without
	names string                      // of the arguments
	in    *opened
	entry string
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

// Intercept returns a machine whose calls go through f, also those of the directories that it opens. Now and Sleep
// do not, nor does Close of a directory, which can neither wait nor fail. Without f it is m itself.
func Intercept(m Machine, f Interceptor) Machine {
	if f == nil {
		return m
	}
	return &machine{m, f, m}
}

// machine is an intercepted one. Most of its methods are in zintercept.go. It embeds only the clock, so that a
// method that is missing there does not compile.
type machine struct {
	Clock
	f     Interceptor
	below Machine
}

func (m *machine) OpenDirectory(ctx context.Context, path Path) (Directory, error) {
	d := &directory{tree: tree{f: m.f, opened: opened{path: path}}}
	c := call[args1[Path], nothing]{args: args1[Path]{path}}
	c.Call = Call{Method: "OpenDirectory", of: &c.args, names: "path"}
	return d.unless(m.f(ctx, &c.Call, func(ctx context.Context) (err error) {
		d.below, err = m.below.OpenDirectory(ctx, c.args.a)
		return err
	}))
}

// opened is the way by which a directory was opened: by a path, or by a name in another directory. The whole path
// is made on demand: the paths of a deep tree take more memory than the tree.
type opened struct {
	above *opened
	name  string
	path  Path // without above
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

type tree struct {
	f      Interceptor
	opened opened
	below  Tree
}

func (m *tree) ListDirectory(ctx context.Context, name string, each func(dir Tree, entries []DirEntry) error) error {
	c := call[args1[string], int]{args: args1[string]{name}}
	c.Call = Call{Method: "ListDirectory", Result: &c.result, of: &c.args, names: "name", in: &m.opened, entry: name}
	listed := opened{above: &m.opened, name: name}
	return m.f(ctx, &c.Call, func(ctx context.Context) error {
		return m.below.ListDirectory(ctx, name, func(dir Tree, entries []DirEntry) error {
			c.result += len(entries)
			return each(&tree{m.f, listed, dir}, entries)
		})
	})
}

type directory struct {
	tree
	below Directory
}

func (m *directory) Open(ctx context.Context, name string) (Directory, error) {
	d := &directory{tree: tree{f: m.f, opened: opened{above: &m.opened, name: name}}}
	c := call[args1[string], nothing]{args: args1[string]{name}}
	c.Call = Call{Method: "Open", of: &c.args, names: "name", in: &m.opened, entry: name}
	return d.unless(m.f(ctx, &c.Call, func(ctx context.Context) (err error) {
		d.below, err = m.below.Open(ctx, c.args.a)
		return err
	}))
}

// unless returns the directory that was opened, unless the call or its interceptor has failed.
func (m *directory) unless(err error) (Directory, error) {
	if err == nil {
		m.tree.below = m.below
		return m, nil
	}
	if m.below != nil { // f has failed after the call
		m.below.Close()
	}
	return nil, err
}

func (m *directory) Close() { m.below.Close() }
