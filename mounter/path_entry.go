package mounter

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// pathEntry is what is at a path. Without a kind it is nothing.
type pathEntry struct {
	kind   fsapi.EntryType
	target string // where a link leads, or the volume of a mounted folder
	// guessed means that a mounted folder may be a link to one, that the target of a link is unknown, and that a file,
	// or a link that leads nowhere, is taken for a folder.
	guessed  bool
	unlisted bool // the daemon cannot list directories
}

// entryAt finds out what is at a path, without following it.
func (m *Mounter) entryAt(ctx context.Context, path string) (pathEntry, error) {
	dir, ok := parent(path)
	if !ok {
		return pathEntry{kind: fsapi.OtherEntry}, nil // a drive
	}
	entries, complete, err := m.node.list(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return pathEntry{}, nil
	case cannotTell(err):
		at, err := m.guessEntryAt(ctx, path)
		at.unlisted = true
		return at, err
	case failure.ClassOf(err) == failure.InUse: // the directory is a link itself
		return m.guessEntryAt(ctx, path)
	case err != nil:
		return pathEntry{}, err
	}
	at := slices.IndexFunc(entries, func(e fsapi.DirectoryEntry) bool {
		return strings.EqualFold(e.Name, strings.TrimPrefix(path[len(dir):], `\`))
	})
	switch {
	case at >= 0 && entries[at].Type != fsapi.OtherEntry: // which is also a link that could not be read just now
		return pathEntry{kind: entries[at].Type, target: entries[at].Target}, nil
	case at < 0 && complete:
		return pathEntry{}, nil
	}
	return m.guessEntryAt(ctx, path)
}

// guessEntryAt is entryAt for a daemon that cannot list directories.
func (m *Mounter) guessEntryAt(ctx context.Context, path string) (pathEntry, error) {
	switch id, err := m.node.mountedAt(ctx, path); {
	case err == nil:
		return pathEntry{kind: fsapi.MountEntry, target: id, guessed: true}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return pathEntry{}, err
	}
	switch live, err := m.node.isLiveLink(ctx, path); {
	case errors.Is(err, fs.ErrNotExist):
		return pathEntry{}, nil
	case err != nil:
		return pathEntry{}, err
	case live:
		return pathEntry{kind: fsapi.LinkEntry, guessed: true}, nil
	default:
		return pathEntry{kind: fsapi.SubdirectoryEntry, guessed: true}, nil
	}
}

// emptyEntryAt is entryAt that fails if a folder has content.
func (m *Mounter) emptyEntryAt(ctx context.Context, path string) (pathEntry, error) {
	at, err := m.entryAt(ctx, path)
	if err != nil || at.kind != fsapi.SubdirectoryEntry {
		return at, err
	}
	err = m.checkEmpty(ctx, path)
	if code, _ := failure.WindowsCode(err); code == errorDirectory { // a call of Stage that was interrupted has just mounted it
		return m.entryAt(ctx, path)
	}
	return at, err
}

// checkFree fails unless a volume of a disk can be mounted at a path. It returns the volume that is mounted there, which
// may be the same one, but not read-only for a request to write.
func (m *Mounter) checkFree(ctx context.Context, path string, request StageRequest) (volume string, err error) {
	at, err := m.emptyEntryAt(ctx, path)
	if err != nil {
		return "", err
	}
	switch at.kind {
	case "", fsapi.SubdirectoryEntry:
		return "", nil
	case fsapi.MountEntry:
		before, err := m.recall(ctx, path)
		if before.readOnly && !request.ReadOnly {
			err = newError(failure.Exists, "look at", path, "a volume is staged there read-only; unstage it first")
		}
		return at.target, err
	case fsapi.LinkEntry:
		return "", newError(failure.Exists, "look at", path, "it is a link, perhaps of another volume; unstage that volume first")
	default:
		return "", errForeign("look at", path, "it is not a folder", 0)
	}
}

func (m *Mounter) checkEmpty(ctx context.Context, path string) error {
	entries, _, err := m.node.list(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case cannotTell(err): // only an empty folder can be removed
		if err := m.remove(ctx, path); err != nil {
			return err
		}
		return m.node.makeDir(ctx, path)
	case err != nil:
		return err
	case len(entries) > 0:
		return errForeign("look at", path, "it is not empty", 0)
	}
	return nil
}

func errForeign(op, path, what string, code uint32) error {
	return &nodeError{class: failure.InUse, code: code, text: prefix(op, path) + what + "; files that are not of a volume stay, so move them away"}
}

// Codes of Windows, see https://learn.microsoft.com/windows/win32/debug/system-error-codes.
const (
	errorDirNotEmpty = 145 // ERROR_DIR_NOT_EMPTY
	// ERROR_DEVICE_NOT_CONNECTED: of a flush it is a failure, because a volume that is gone has no flush.
	errorDeviceNotConnected = 1167
	errorDirectory          = 267 // ERROR_DIRECTORY: the name is not that of a folder
)

// remove removes a link, a mounted folder or an empty folder. Of anything else it says what a user can
// do about it: the API has an option for that, and the mounter has none.
func (m *Mounter) remove(ctx context.Context, path string) error {
	const op = "remove"
	err := m.node.remove(ctx, path)
	if code, _ := failure.WindowsCode(err); code == errorDirNotEmpty {
		return errForeign(op, path, "it is not empty", code)
	}
	if failure.ClassOf(err) == failure.Invalid { // our paths have the right form, so it is the object
		return errForeign(op, path, "it is a file", 0)
	}
	return err
}
