package win

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Path names a file or directory of a machine, and says how far links on the way to it
// may be followed.
//
// In Base they are followed, wherever they stand, as Windows always does. Below it none
// is: one before the last name of Rest makes a call fail with code 4395, and a link of
// the last name is itself what the path names. That a call went through so proves that
// the file lies below Base, which no comparison of strings can.
type Path struct {
	// Base is a clean path, a volume's id or, for calls that only look, a network path.
	Base string
	// Rest are the names below Base, separated by backslashes; without any, the path is
	// what Base leads to.
	Rest string
}

// Following is the path of what a clean path leads to after every link.
func Following(path string) Path { return Path{Base: path} }

// Anywhere is the path of what stands at a clean path; links on the way are followed.
func Anywhere(path string) Path {
	parent, ok := winpath.Parent(path)
	if !ok {
		return Path{Base: path}
	}
	return Path{Base: parent, Rest: path[strings.LastIndexByte(path, '\\')+1:]}
}

// Beneath is the path of what stands at a clean path in a clean directory that contains
// it; no link below the directory is followed. The directory may be spelled otherwise in
// the path, so it is cut off by the number of its names.
func Beneath(dir, path string) Path {
	below := path[len(`C:\`):]
	for range winpath.Components(dir) {
		_, below, _ = strings.Cut(below, winpath.Separator)
	}
	return Path{Base: dir, Rest: below}
}

// String is the path as text.
func (p Path) String() string {
	if p.Rest == "" {
		return p.Base
	}
	return winpath.Join(p.Base, p.Rest)
}

// Split returns the directory in which the path's last name stands, and that name. Without
// a name below Base there is none.
func (p Path) Split() (dir Path, name string) {
	if i := strings.LastIndexByte(p.Rest, '\\'); i >= 0 {
		return Path{Base: p.Base, Rest: p.Rest[:i]}, p.Rest[i+1:]
	}
	return Path{Base: p.Base}, p.Rest
}

// Names returns the names below Base.
func (p Path) Names() []string {
	if p.Rest == "" {
		return nil
	}
	return strings.Split(p.Rest, winpath.Separator)
}

// Join returns the path with names appended.
func (p Path) Join(names ...string) Path {
	if p.Rest != "" {
		names = append([]string{p.Rest}, names...)
	}
	return Path{Base: p.Base, Rest: strings.Join(names, winpath.Separator)}
}
