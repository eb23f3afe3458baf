// Package policy decides which files a caller may reach, and leads it there.
//
// Callers are CSI drivers, but the paths they pass on come from whoever can create a pod.
// A Policy has working directories, and its rule is that whatever a path names must lie in
// one of them: the path as it is spelled, and the file to which it leads. The two differ
// when a link stands on the way, and links can be made by everybody who may write to a
// working directory.
//
// So links are not left to Windows. A Reach opens what lies below a working directory in
// such a way that Windows refuses to follow any link, reads the link that was in the way,
// and goes on only if it leads to a place that the policy allows as well. What is then
// created, mounted or removed is an entry of the directory that was opened so, by its
// handle. Exchanging a directory for a link at the right moment gains nothing: before the
// directory is opened the link is met, and after that its path no longer matters.
//
// The daemon always has a policy. The library has one if the driver asks for it; without,
// a nil *Policy, links are followed as Windows does.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Policy is what a caller may touch. It is immutable and safe for concurrent use. A nil
// Policy has no limits.
type Policy struct {
	workingDirs []string // clean
}

// New makes a policy from the directories that a caller may touch.
func New(workingDirs []string) (*Policy, error) {
	if len(workingDirs) == 0 {
		return nil, errors.New("no working directory is given, so nothing could be touched")
	}
	policy := &Policy{}
	for _, dir := range workingDirs {
		clean, err := winpath.Clean(dir)
		if err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
		policy.workingDirs = append(policy.workingDirs, clean)
	}
	return policy, nil
}

// WorkingDirs are the directories that a caller may touch.
func (p *Policy) WorkingDirs() []string { return slices.Clone(p.workingDirs) }

// Access is what a call does with the file that a path names.
type Access uint8

// What calls do.
const (
	Read    Access = iota // look at what stands there
	Enter                 // look at what it leads to
	Show                  // make a link that leads to it
	Create                // make a directory of it, if it is not there
	Link                  // make a link of it
	Mount                 // cover it with a volume
	Unmount               // uncover it
	Remove                // remove it, or what is in it
)

// rules say how far an access may go.
var rules = [...]struct {
	// intact means that no working directory may be the object, nor a directory that
	// holds one.
	intact bool
	// makes means that missing directories are made.
	makes bool
	// volumes means that mounted folders on the way may be entered. What lies on a
	// volume was written by pods, so nothing is made or removed there: they have the
	// volume themselves.
	volumes bool
	// last means that a link at the end of the path is followed.
	last bool
	// shares means that the way may end at a link to a share. It is not checked what
	// lies there: that is another machine.
	shares bool
}{
	Read:    {volumes: true},
	Enter:   {last: true, volumes: true, shares: true},
	Show:    {intact: true, last: true, volumes: true, shares: true},
	Create:  {makes: true},
	Link:    {intact: true},
	Mount:   {intact: true, makes: true},
	Unmount: {intact: true, volumes: true},
	Remove:  {intact: true},
}

// Check judges a clean path by its spelling alone, before anything is done for the call.
func (p *Policy) Check(op, path string, access Access) error {
	_, err := p.place(op, path, access)
	return err
}

// place judges a clean path by its spelling, and returns the way to it from the working
// directory that holds it. A working directory is reached as its operator wrote it down,
// links included.
func (p *Policy) place(op, path string, access Access) (win.Path, error) {
	if p == nil {
		return win.Anywhere(path), nil
	}
	dir, ok := p.holding(path)
	if !ok {
		return win.Path{}, winerr.As(winerr.Denied, op, path,
			fmt.Errorf("it is outside the working directories (%s)", strings.Join(p.workingDirs, ", ")),
			"the flags -kubelet-path and -working-dir of csi-proxy, or the option WorkingDirs of the library, add one")
	}
	if rules[access].intact {
		for _, other := range p.workingDirs {
			if winpath.Contains(path, other) {
				return win.Path{}, winerr.New(winerr.Denied, op, path,
					"%s is a working directory, which is never shown, replaced, removed, emptied or mounted over", other)
			}
		}
	}
	switch {
	case !winpath.Equal(dir, path):
		return win.Beneath(dir, path), nil
	case rules[access].last:
		return win.Following(dir), nil
	default:
		return win.Anywhere(dir), nil
	}
}

// contains reports whether a path, which need not be clean, lies in a working directory.
func (p *Policy) contains(path string) bool {
	clean, err := winpath.Clean(path)
	if err != nil {
		return false
	}
	_, ok := p.holding(clean)
	return ok
}

// has reports whether a clean path is that of a working directory.
func (p *Policy) has(path string) bool {
	return slices.ContainsFunc(p.workingDirs, func(dir string) bool { return winpath.Equal(dir, path) })
}

// holding returns the innermost working directory that holds a path: the outer one might
// have a link on the way to it, which the operator made.
func (p *Policy) holding(path string) (dir string, ok bool) {
	for _, candidate := range p.workingDirs {
		if winpath.Contains(candidate, path) && (!ok || winpath.Contains(dir, candidate)) {
			dir, ok = candidate, true
		}
	}
	return dir, ok
}
