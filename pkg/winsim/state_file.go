package winsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/internal/claim"
)

// stateFile is the file that keeps a node's state.
//
// Every call that changes the node unlocks it, then waits until its change is on disk. Calls
// that wait at the same time share one write: the first of them writes for all.
type stateFile struct {
	node      *Node
	path      string
	onFailure func(error)
	readers   time.Duration // the limit for other programs that have the file open
	lock      *os.File
	changes   uint64 // so far; n.mu guards it

	mu      sync.Mutex // held while a file is written
	written uint64     // the number of changes in the file
	broken  bool       // writing has failed; do not try again
}

// resolve follows symbolic links, so that a file has one lock and is replaced where it is,
// whichever name the caller uses. The file need not exist.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if target, err := os.Readlink(path); err == nil {
		return "", fmt.Errorf("%s is a link to %s, which does not exist; create that file with the path of the link's target, or remove the link", path, target)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// Open returns a node that keeps its state in a file. It loads the state from the file, or
// creates a new node if the file does not exist. When a call to the node returns, its change is
// in the file. Open replaces the file instead of overwriting it, so that a killed process
// leaves a complete one. One process can use the file at a time. Its content is that of Model
// as JSON, with secrets; only its user can read it.
//
// The model must be the one that the node in the file was created from, but may have another
// Storage, Seed and RealTime.
//
// CloseFile releases the file; the node continues in memory. Open calls failed once if it
// cannot write the file; later changes stay in memory. Failed must not call the node. Calls
// that change the node wait until it returns.
//
// A node with a state file cannot be mirrored (Mirror).
func Open(model Model, path string, failed func(error)) (node *Node, closeFile func(), err error) {
	return open(model, path, failed, readersLimit)
}

// open is Open with a limit for other programs that have the file open.
func open(model Model, path string, failed func(error), readers time.Duration) (node *Node, closeFile func(), err error) {
	if path, err = resolve(path); err != nil {
		return nil, nil, fmt.Errorf("open state file: %w", err)
	}
	lock, err := claim.Lock(path + ".lock")
	if err != nil {
		if _, missing := os.Stat(filepath.Dir(path)); missing != nil {
			return nil, nil, fmt.Errorf("open state file %s: %w", path, missing)
		}
		return nil, nil, fmt.Errorf("lock %s: %w; another csi-proxy-sim may be using it", path, err)
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	saved, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		node, err = New(model)
	case err == nil:
		if node, err = load(model, saved); err != nil {
			err = fmt.Errorf("load %s: %w; use another file, or delete this one to start with a new node", path, err)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	k := &stateFile{node: node, path: path, onFailure: failed, readers: readers, lock: lock, changes: 1}
	if err := k.write(); err != nil {
		return nil, nil, err
	}
	node.mu.Lock()
	defer node.mu.Mutex.Unlock()
	node.mu.stateFile = k
	return node, sync.OnceFunc(k.close), nil
}

// load returns the node of a state file. The model must be the one that the node was created from, but can
// have another behaviour.
func load(model Model, saved []byte) (*Node, error) {
	var now Model
	decoder := json.NewDecoder(bytes.NewReader(saved))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&now)
	switch {
	case err == nil && decoder.More():
		err = errors.New("unexpected data after the end")
	case err == nil && now.Running == nil:
		err = errors.New("running is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("not the model of a running node, or damaged: %w", err)
	}
	if now.Running.Origin != model.origin() {
		return nil, errors.New("the state belongs to a node of another model")
	}
	now.Seed, now.RealTime, now.Storage = model.Seed, model.RealTime, model.Storage
	node, err := New(now)
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return node, nil
}

// encode returns the content of the state file. n.mu is held.
func (n *Node) encode() ([]byte, error) {
	m, err := n.save()
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

func (k *stateFile) wait(change uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.written >= change || k.broken {
		return
	}
	if err := k.write(); err != nil {
		k.broken = true
		k.onFailure(err)
	}
}

// write replaces the file by one with all changes so far. k.mu is held, or k is not shared yet.
func (k *stateFile) write() error {
	k.node.mu.Lock()
	changes := k.changes
	data, err := k.node.encode()
	k.node.mu.Mutex.Unlock()
	if err == nil {
		err = replaceFile(k.path, data, k.readers)
	}
	if err != nil {
		return fmt.Errorf("save the state of the node: %w", err)
	}
	k.written = changes
	return nil
}

// Virus scanners and tests read the file for a moment. Windows has no event for their leaving.
const (
	readersPause = 5 * time.Millisecond
	readersLimit = 10 * time.Second
)

// isInTheWay reports whether another program may have the file open. Windows replaces a file only if its
// readers share the right to delete, which most do not, and answers ERROR_SHARING_VIOLATION (32) or
// ERROR_ACCESS_DENIED (5).
func isInTheWay(err error) bool {
	return runtime.GOOS == "windows" &&
		(errors.Is(err, syscall.Errno(winerr.SharingViolation)) || errors.Is(err, syscall.Errno(winerr.AccessDenied)))
}

func (k *stateFile) close() {
	k.node.mu.Lock()
	k.node.mu.stateFile = nil
	k.node.mu.Mutex.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.lock.Close()
}

// replaceFile replaces a file atomically, so that a complete one exists even after a loss of
// power. It waits for other programs that have the file open.
func replaceFile(path string, data []byte, readers time.Duration) error {
	next := path + ".new"
	// Do not reuse what a killed process left: it may be a link by now.
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := renameOver(next, path, readers); err != nil {
		return err
	}
	// Sync the rename too. Where directories cannot be opened, as on Windows, the system does
	// it.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// renameOver renames a file to the name of another, and tries again while that is in the way.
func renameOver(next, path string, readers time.Duration) error {
	deadline := time.Now().Add(readers)
	for {
		err := os.Rename(next, path)
		switch {
		case !isInTheWay(err):
			return err
		case !time.Now().Before(deadline):
			return fmt.Errorf("%w; another program has had the file open for %s, or this user may not replace it", err, readers)
		}
		time.Sleep(readersPause)
	}
}
