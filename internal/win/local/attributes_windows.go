package local

import (
	"errors"
	"sync"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// This file asks for a file's attributes by name, without opening it. The one system call follows no
// link, just like openAt. It answers what most calls want to know: that there is an ordinary file or
// directory, or nothing. Everything else takes an open: links, whose tags attributes do not contain,
// and all failures that may have another reason.

// errUnsure means that attributes do not show what a name stands for.
var errUnsure = errors.New("only an open handle shows what it is")

// attributesByName describes an ordinary file or directory by its names below an open directory, or without
// one by its name in the kernel.
func attributesByName(dir windows.Handle, names string) (win.FileInfo, error) {
	name, err := objectName(dir, names)
	if err != nil {
		return win.FileInfo{}, errUnsure
	}
	attributes, err := winapi.FileAttributes(name)
	switch code := winerr.CodeOf(err); {
	case code == winerr.FileNotFound || code == winerr.PathNotFound:
		return win.FileInfo{}, code
	case err != nil || attributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		return win.FileInfo{}, errUnsure
	}
	return winlayout.FileInfo(attributes, 0), nil
}

// nameForm is which names Windows accepts here.
type nameForm int

const (
	// noNames: every call opens the file.
	noNames nameForm = iota
	// relativeNames: a drive letter counts as a link, so names begin at an open directory. We expect
	// this of Windows.
	relativeNames
	// fullNames: a drive letter does not count as a link, and whole paths can be asked for. So it is
	// in Wine, where names must not begin at a directory: it would look for them in another one.
	fullNames
)

// acceptedNames asks about the root of the drive of Windows, which always exists.
var acceptedNames = sync.OnceValue(func() nameForm {
	directory, err := winapi.WindowsDirectory()
	if err != nil || len(directory) < len(drive) {
		return noNames
	}
	name, err := objectName(0, kernelPrefix+directory[:len(drive)])
	if err != nil {
		return noNames
	}
	switch _, err := winapi.FileAttributes(name); {
	case err == nil:
		return fullNames
	case winerr.CodeOf(err) == winerr.ReparsePointEncounter:
		return relativeNames
	default:
		return noNames
	}
})

const (
	kernelPrefix = `\??\`
	drive        = `C:\`
)

// roots lends the roots of drives. Open, a root keeps no directory from being renamed or removed,
// and the names below it are looked up again by each call. So a directory that was replaced a
// moment ago is seen as what it is now, and as a link it is not followed.
var roots = leases[windows.Handle]{
	open:  func(root string) (windows.Handle, error) { return follow(root, look) },
	close: func(root windows.Handle) { windows.CloseHandle(root) },
}

// attributesByPath describes what a path on a drive names, if that is an ordinary file or directory and no
// link is on the way, the path's base included.
func attributesByPath(path win.Path) (info win.FileInfo, err error) {
	root, names, ok := cutRoot(path)
	if !ok {
		return info, errUnsure
	}
	switch acceptedNames() {
	case fullNames:
		return attributesByName(0, kernelPrefix+root+names)
	case relativeNames:
		failure := roots.use(root, func(handle windows.Handle) error {
			info, err = attributesByName(handle, names)
			return nil
		})
		if failure == nil {
			return info, err
		}
	case noNames:
	}
	return info, errUnsure
}

// cutRoot splits a path on a drive into C:\ and the names below, of which there must be one.
func cutRoot(path win.Path) (root, names string, ok bool) {
	if len(path.Base) < len(drive) || path.Base[1:len(drive)] != drive[1:] {
		return "", "", false
	}
	names = path.Base[len(drive):]
	switch {
	case names == "":
		names = path.Rest
	case path.Rest != "":
		names += winpath.Separator + path.Rest
	}
	return path.Base[:len(drive)], names, names != ""
}

// itself is for calls that attributes answer in full.
func itself(info win.FileInfo) (win.FileInfo, error) { return info, nil }

// noLink is for calls that read a link, at an ordinary file or directory.
func noLink(win.FileInfo) (win.ReparsePoint, error) {
	return win.ReparsePoint{}, winerr.NotAReparsePoint
}
