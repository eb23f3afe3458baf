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

// attributesByName describes an ordinary file or directory by its names below an open directory.
func attributesByName(dir windows.Handle, names string) (win.FileInfo, error) {
	name, err := objectName(dir, names)
	if err != nil || !drivesAreLinks() {
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

const drive = `C:\`

// drivesAreLinks reports whether the call refuses the root of a drive by its name: to the kernel that is
// a link. That NtQueryAttributesFile honours OBJ_DONT_REPARSE is documented nowhere, so it is asked once.
// Where a link is not refused, files are opened.
var drivesAreLinks = sync.OnceValue(func() bool {
	directory, err := winapi.WindowsDirectory()
	if err != nil || len(directory) < len(drive) {
		return false
	}
	name, err := objectName(0, `\??\`+directory[:len(drive)])
	if err == nil {
		_, err = winapi.FileAttributes(name)
	}
	return winerr.CodeOf(err) == winerr.ReparsePointEncounter
})

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
	full := path.Base
	if path.Rest != "" {
		full = winpath.Join(full, path.Rest)
	}
	if len(full) <= len(drive) || full[1:len(drive)] != drive[1:] || !drivesAreLinks() {
		return info, errUnsure
	}
	if roots.use(full[:len(drive)], func(root windows.Handle) { info, err = attributesByName(root, full[len(drive):]) }) != nil {
		return info, errUnsure
	}
	return info, err
}

// itself is for calls that attributes answer in full.
func itself(info win.FileInfo) (win.FileInfo, error) { return info, nil }

// noLink is for calls that read a link, at an ordinary file or directory.
func noLink(win.FileInfo) (win.ReparsePoint, error) {
	return win.ReparsePoint{}, winerr.NotAReparsePoint
}
