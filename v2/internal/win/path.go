package win

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Path names a file or directory of a machine, and says how far links on the way to it
// may be followed.
//
// Links in Base are followed, as Windows always does. Links below it are not: a link before the
// last name of Rest makes a call fail with ERROR_REPARSE_POINT_ENCOUNTERED (4395), and a link
// with the last name is itself what the path names. So a call that succeeds proves that the file
// is below Base, which no comparison of strings can.
type Path struct {
	// Base is a clean path, a volume's id or, for calls that only look, a network path.
	Base string
	// Rest are the names below Base, separated by backslashes. If it is empty, the path names
	// what Base leads to.
	Rest string
}

// Following is the path of what a clean path leads to after every link.
func Following(path string) Path { return Path{Base: path} }

// Anywhere is a clean path in which all links but the last name are followed.
func Anywhere(path string) Path {
	parent, ok := winpath.Parent(path)
	if !ok {
		return Path{Base: path}
	}
	return Path{Base: parent, Rest: path[strings.LastIndexByte(path, '\\')+1:]}
}

// Beneath is a clean path in a clean directory that contains it; no link below the directory is
// followed. The path may spell the directory differently, so the directory is cut off by its
// number of names.
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

// Split returns the directory of the path's last name, and that name, which is empty if Rest is.
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
