package winsim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/internal/claim"
)

// stateFile is the file in which a node's state is kept.
//
// Every call that changes the node waits, after it gave the node free, until a file that has
// its change is on the disk. Calls that wait at the same time share one file: while one is
// written the next ones gather, and the first of them writes for all.
type stateFile struct {
	node      *Node
	path      string
	onFailure func(error)
	lock      *os.File
	changes   uint64 // so far; n.mu guards it

	mu      sync.Mutex // held while a file is written
	written uint64     // the changes that the file has
	broken  bool       // nothing is written any more
}

// Open makes a node whose state is kept in a file: of the state in it, or if there is no file
// yet, as the model says. From then on the file has, at every moment, all changes that a call
// to the node has returned from. It is replaced, never written to, so a process that is killed
// leaves a whole one. One process uses it at a time. See Load for the model, and Save for what
// the file contains.
//
// Close ends the keeping; the node lives on without. Failed is told once if the file cannot be
// written any more; from then on changes are in memory only. It must not call the node. Until it
// returns no call that changes the node does.
//
// A node with a kept state cannot be shown in real directories (Mirror).
func Open(model Model, path string, failed func(error)) (node *Node, closeFile func(), err error) {
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
		if node, err = Load(model, bytes.NewReader(saved)); err != nil {
			err = fmt.Errorf("load %s: %w; use another file, or delete this one to start with a new node", path, err)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	k := &stateFile{node: node, path: path, onFailure: failed, lock: lock, changes: 1}
	if err := k.write(); err != nil {
		return nil, nil, err
	}
	node.mu.Lock()
	defer node.mu.Mutex.Unlock()
	node.mu.stateFile = k
	return node, sync.OnceFunc(k.close), nil
}

// wait returns when the file has a change.
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

// write replaces the file by one with all changes so far. k.mu is held, or nobody else knows k.
func (k *stateFile) write() error {
	k.node.mu.Lock()
	changes := k.changes
	data, err := k.node.encode()
	k.node.mu.Mutex.Unlock()
	if err == nil {
		err = replaceFile(k.path, data)
	}
	if err != nil {
		return fmt.Errorf("save the state of the node: %w", err)
	}
	k.written = changes
	return nil
}

func (k *stateFile) close() {
	k.node.mu.Lock()
	k.node.mu.stateFile = nil
	k.node.mu.Mutex.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.lock.Close()
}

// replaceFile puts a new file in the place of another, so that there is a whole one at any
// moment, also after a loss of power.
func replaceFile(path string, data []byte) error {
	next := path + ".new"
	// What a process that was killed has left is not written to: it may be a link by now.
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
	if err := os.Rename(next, path); err != nil {
		return err
	}
	// That the name means the new file has to reach the disk, too. Where directories cannot
	// be opened, as on Windows, the system sees to it.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}
