package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// A record is never in or beside a staging path: the kubelet removes those folders, and fails if they are not empty.
const (
	recordFolder  = "csi-proxy-mounter"
	recordVersion = 1
	maxRecord     = win.MaxFile / 2
	// recordAge is how old a record is that goes if its path is gone: the kubelet may not have made the folder yet.
	recordAge = 24 * time.Hour
)

type record struct {
	Version int             `json:"version"`
	Path    string          `json:"path"`
	Volume  json.RawMessage `json:"volume"`
}

// recordAt returns the folder and the name of the record of a path.
func recordAt(op, path string) (dir, name string, err error) {
	const plugins = "plugins"
	names := winpath.Components(path)
	for i, component := range names {
		if winpath.Equal(component, plugins) && i < len(names)-1 {
			dir := path[:2] + winpath.Separator + strings.Join(append(names[:i:i], component, recordFolder), winpath.Separator)
			sum := sha256.Sum256([]byte(winpath.Fold(path)))
			return dir, hex.EncodeToString(sum[:]) + ".json", nil
		}
	}
	return "", "", winerr.New(winerr.Invalid, op, path, `it is not below the kubelet's folder "plugins", beside which records are`)
}

func decodeRecord(text string) (r record, problem string) {
	switch err := json.Unmarshal([]byte(text), &r); {
	case err != nil:
		return r, "it is damaged"
	case r.Version != recordVersion:
		return r, "it is of another version of CSI Proxy"
	default:
		return r, ""
	}
}

func (b boundHost) Record(path string) (text, problem string, err error) {
	ctx, h := b.ctx, b.host
	const op = "read record of"
	err = h.withRecord(ctx, op, path, func(entry policy.Entry) (err error) {
		text, err = entry.Dir.ReadFile(ctx, entry.Name)
		return err
	})
	if errors.Is(err, winerr.NotFound) {
		return "", "", nil
	}
	if err != nil {
		return "", "", winerr.Wrap(op, path, err)
	}
	r, problem := decodeRecord(text)
	if problem == "" && !winpath.Equal(r.Path, path) {
		problem = "it is of another path"
	}
	if problem != "" {
		return "", problem, nil
	}
	return string(r.Volume), "", nil
}

func (b boundHost) SetRecord(path, text string) error {
	ctx, h := b.ctx, b.host
	const op = "keep record of"
	dir, _, err := recordAt(op, path)
	switch {
	case err != nil:
		return err
	case text == "":
		err = h.withRecord(ctx, op, path, func(entry policy.Entry) error { return entry.Dir.Remove(ctx, entry.Name) })
		if errors.Is(err, winerr.NotFound) {
			err = nil
		}
		return winerr.Wrap(op, path, err)
	case len(text) > maxRecord || !json.Valid([]byte(text)):
		return winerr.New(winerr.Invalid, op, path, "it must be JSON of at most %d bytes", maxRecord)
	}
	content, err := json.Marshal(record{recordVersion, path, json.RawMessage(text)})
	if err != nil {
		return winerr.As(winerr.Invalid, op, path, err, "")
	}
	if _, _, err := h.files.MakeDirectory(ctx, op, dir); err != nil {
		return winerr.Wrap(op, path, err)
	}
	return winerr.Wrap(op, path, h.withRecord(ctx, op, path, func(entry policy.Entry) error {
		if h.swept.CompareAndSwap(false, true) {
			h.sweepRecords(ctx, op, entry.Dir)
		}
		return entry.Dir.ReplaceFile(ctx, entry.Name, string(content))
	}))
}

func (h host) withRecord(ctx context.Context, op, path string, do func(policy.Entry) error) error {
	dir, name, err := recordAt(op, path)
	if err != nil {
		return err
	}
	entry, err := h.files.Open(ctx, op, dir+winpath.Separator+name, policy.Create)
	if err != nil {
		return err
	}
	defer entry.Close()
	return do(entry)
}

// sweepRecords removes old records whose path is gone: nothing is staged there any more. What it cannot read stays.
func (h host) sweepRecords(ctx context.Context, op string, in win.Directory) {
	cutoff := h.m.Now().Add(-recordAge)
	_ = win.List(ctx, in, "", func(_ win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			if changed, err := in.ChangedAt(ctx, entry.Name); err != nil || changed.After(cutoff) {
				continue
			}
			text, err := in.ReadFile(ctx, entry.Name)
			if err != nil {
				continue
			}
			old, problem := decodeRecord(text)
			if _, name, err := recordAt(op, old.Path); problem != "" || err != nil || name != entry.Name { // of others
				continue
			}
			if _, err := h.files.Info(ctx, op, old.Path); errors.Is(err, winerr.NotFound) {
				_ = in.Remove(ctx, entry.Name)
			}
		}
		return nil
	})
}
