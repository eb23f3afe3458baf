// Package utils keeps the functions that versions v2.0.0-alpha.0 to alpha.2 of the original export,
// so that released drivers compile. Releases 3.5 to 3.7 of the vSphere driver import it. No
// package of ours does, and no program of ours contains it.
//
// Deprecated: use the groups of the library, such as package filesystem.
package utils

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

const (
	// MaxPathLengthWindows is MAX_PATH. The library accepts longer paths.
	MaxPathLengthWindows = 260
	// LongPathPrefix is what EnsureLongPath puts in front of a path.
	LongPathPrefix = `\\?\`
)

// EnsureLongPath puts LongPathPrefix in front of a path that does not begin with it.
//
// Deprecated: the library accepts long paths without the prefix.
func EnsureLongPath(path string) string {
	return LongPathPrefix + strings.TrimPrefix(path, LongPathPrefix)
}

// IsPathValid reports whether Windows finds a path, local or on the network. A path that is
// missing or malformed is not an error; a share whose password has changed is.
//
// Deprecated: use PathValid of package filesystem.
func IsPathValid(path string) (bool, error) { return isPathValid(path) }

// IsMountedFolder reports whether a path is a mounted folder, a junction or a symbolic link. A
// missing path is an error.
//
// Deprecated: use IsSymlink of package filesystem.
func IsMountedFolder(path string) (bool, error) { return isMountedFolder(path) }

// IsPathSymlink reports whether a path is a symbolic link, a junction or a mounted folder. A
// missing path is an error.
//
// Deprecated: use IsSymlink of package filesystem.
func IsPathSymlink(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	return info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0, nil
}

// CreateSymlink makes a symbolic link, to a directory or to a file. The target may be missing.
//
// Deprecated: use CreateSymlink of package filesystem.
func CreateSymlink(link, target string, isDir bool) error { return createSymlink(link, target, isDir) }

// PathExists reports whether a path exists. A link exists even if its target does not.
//
// Deprecated: use PathExists of package filesystem.
func PathExists(path string) (bool, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	return false, nil
}
