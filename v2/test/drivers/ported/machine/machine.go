// Package machine is what a driver's node service asks the machine that it runs on, answered by an
// emulated node. It becomes a part of the driver's module, where it takes the place of packages os and
// runtime.
package machine

import (
	"io/fs"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// GOOS is the system of the node.
const GOOS = "windows"

var node *winsim.Node

// Use makes n the node of this process.
func Use(n *winsim.Node) { node = n }

// Lstat reports whether a path exists. Drivers do not look at more than the error.
func Lstat(path string) (fs.FileInfo, error) {
	return nil, ask("lstat", path, node.Filesystem().PathExists)
}

// ReadDir reports whether a directory can be read, if need be behind a link. Drivers do not look at more
// than the error.
func ReadDir(path string) ([]fs.DirEntry, error) {
	return nil, ask("open", path, node.Filesystem().PathValid)
}

// MkdirAll makes a directory, and those above it.
func MkdirAll(path string, _ fs.FileMode) error {
	clean, err := kit.Path(path)
	if err != nil {
		return err
	}
	return node.Filesystem().Mkdir(clean)
}

// ask returns an error of package os if the answer is no.
func ask(op, path string, question func(string) (bool, error)) error {
	clean, err := kit.Path(path)
	if err != nil {
		return err
	}
	yes, err := question(clean)
	if err == nil && !yes {
		err = &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return err
}
