// Package policy decides which files a caller may reach, and opens them.
//
// Callers are CSI drivers, but users who can create pods influence the paths. A Policy has
// working directories, and both the path as spelled and the file that it leads to must lie in
// one of them. The two differ if there is a link on the path, and every process that can
// write to a working directory can make links.
//
// So a Reach follows links itself. It opens what lies below a working directory in such a
// way that Windows follows no link, reads the link that was in the way, and goes on only if
// the policy allows the target as well. It then creates, mounts or removes an entry of that
// open directory, by its handle. Replacing a directory by a link gains nothing: before the
// directory is opened, the open meets the link; afterwards the path no longer matters.
//
// The daemon always has a policy. The library has one if the driver asks for it. Without one,
// a nil *Policy, Windows follows links.
package policy

import (
	"errors"
	"fmt"
	"os"
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
	text        string   // of String
}

// New makes a policy from the directories that a caller may touch. It refuses what no caller needs: see Unsafe.
func New(workingDirs []string) (*Policy, error) {
	policy, err := NewUnsafe(workingDirs)
	if err != nil {
		return nil, err
	}
	if unsafe := policy.Unsafe(); len(unsafe) > 0 {
		return nil, fmt.Errorf("working directory %s is the root of a drive, or is, holds or lies in a folder of Windows, programs, users or Kubernetes' own files, which callers could then remove; "+
			"name the directory of the kubelet or of the driver; -allow-unsafe-working-dirs of csi-proxy, or UnsafeWorkingDirs of the library, insists", unsafe[0])
	}
	return policy, nil
}

// NewUnsafe is New for an operator who insists.
func NewUnsafe(workingDirs []string) (*Policy, error) {
	if len(workingDirs) == 0 {
		return nil, errors.New("no working directory is given, so every call would be refused")
	}
	policy := &Policy{}
	for _, dir := range workingDirs {
		clean, err := winpath.Clean(dir)
		if err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
		policy.workingDirs = append(policy.workingDirs, clean)
	}
	policy.text = strings.Join(policy.workingDirs, ", ")
	return policy, nil
}

// WorkingDirs are the directories that a caller may touch.
func (p *Policy) WorkingDirs() []string { return slices.Clone(p.workingDirs) }

// Unsafe returns the working directories that are the root of a drive, or that are, hold or lie in a folder of
// Windows, programs or users, or of the programs and keys of a node: C:\k on AKS, C:\etc\kubernetes on GKE.
func (p *Policy) Unsafe() (unsafe []string) {
	for _, dir := range p.workingDirs {
		drive := dir[:len(`C:\`)]
		folders := []string{drive + "Windows", drive + "Program Files", drive + "Program Files (x86)", drive + "ProgramData", drive + "Users", drive + `etc\kubernetes`, drive + "k"}
		if root, err := winpath.Clean(os.Getenv("SystemRoot")); err == nil {
			folders = append(folders, root)
		}
		if slices.ContainsFunc(folders, func(f string) bool { return winpath.Contains(f, dir) || winpath.Contains(dir, f) }) {
			unsafe = append(unsafe, dir)
		}
	}
	return unsafe
}

// String lists the working directories.
func (p *Policy) String() string { return p.text }

// Access is what a call does with the file that a path names.
type Access uint8

// What calls do.
const (
	Read    Access = iota // look at the file itself, not at the target of a link
	Enter                 // look at the target
	Show                  // make a link that leads to it
	Create                // make it a directory, if it does not exist
	Link                  // make it a link
	Mount                 // mount a volume at it
	Unmount               // take the volume away
	Remove                // remove it, or what is in it
)

// rules say how far an access may go.
var rules = [...]struct {
	// intact means that no working directory may be the object, nor a directory that
	// holds one.
	intact bool
	// makes means that missing directories are made.
	makes bool
	// volumes means that mounted folders on the way may be entered. Pods write to volumes,
	// so nothing is made or removed there: they can do that themselves.
	volumes bool
	// last means that a link at the end of the path is followed.
	last bool
	// shares means that the path may end at a link to a share. What lies there is not
	// checked: that is another machine.
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

// Check checks a clean path by its spelling alone, before anything is done for the call.
func (p *Policy) Check(op, path string, access Access) error {
	_, err := p.locate(op, path, access)
	return err
}

// locate checks a clean path by its spelling, and returns it relative to the working
// directory that holds it. Links in the path of the working directory itself are followed:
// the operator made them.
func (p *Policy) locate(op, path string, access Access) (win.Path, error) {
	if p == nil {
		return win.Anywhere(path), nil
	}
	dir, ok := p.holding(path)
	if !ok {
		return win.Path{}, winerr.As(winerr.Denied, op, path,
			fmt.Errorf("it is outside the working directories (%s)", p),
			"to allow it, add its directory with -kubelet-path or -working-dir of csi-proxy, or with WorkingDirs of the library")
	}
	if rules[access].intact {
		for _, other := range p.workingDirs {
			if winpath.Contains(path, other) {
				return win.Path{}, winerr.New(winerr.Denied, op, path,
					"%s is a working directory, which csi-proxy never links to, replaces, removes, empties or mounts over", other)
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

// holding returns the innermost working directory that holds a path: the operator may have
// made a link between an outer one and it.
func (p *Policy) holding(path string) (dir string, ok bool) {
	for _, candidate := range p.workingDirs {
		if winpath.Contains(candidate, path) && (!ok || winpath.Contains(dir, candidate)) {
			dir, ok = candidate, true
		}
	}
	return dir, ok
}
