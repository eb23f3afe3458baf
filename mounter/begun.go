package mounter

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// begun is what Stage has begun to stage at a path. Unstage, which gets no more than the path, undoes it. A record of it
// outlives the process.
type begun struct {
	source   Source // without secrets; nil if it is unknown
	readOnly bool
	kept     bool // there is a record
	stays    bool // it could not be removed
	leaves   bool // its target: the last volume of it that does so logs out
}

// record is begun as the node keeps it.
type record struct {
	Disk     *Disk  `json:",omitempty"`
	SMB      *SMB   `json:",omitempty"`
	ISCSI    *ISCSI `json:",omitempty"`
	ReadOnly bool
}

// begin remembers what is staged at a path, until end.
func (m *Mounter) begin(ctx context.Context, path string, source Source, readOnly bool) error {
	m.late.Delete(pathKey(path)) // of an earlier Unstage
	now := begun{source: source.keys(), readOnly: readOnly, kept: true}
	if before, ok := m.begun.Load(pathKey(path)); ok && reflect.DeepEqual(before, now) {
		return nil
	}
	r := record{ReadOnly: readOnly}
	switch s := now.source.(type) {
	case Disk:
		r.Disk = &s
	case SMB:
		r.SMB = &s
	case ISCSI:
		r.ISCSI = &s
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = m.node.setRecord(ctx, path, string(text))
	}
	if class := failure.ClassOf(err); class == failure.Unsupported || class == failure.Denied {
		klog.FromContext(ctx).V(2).Info("Only this process knows what it stages", "path", path, "reason", err.Error())
		now.kept, err = false, nil
	}
	if err == nil {
		m.begun.Store(pathKey(path), now)
	}
	return err
}

// isReadOnlyYet reports how a volume is staged until a request has changed that, which pods can prevent.
func (m *Mounter) isReadOnlyYet(ctx context.Context, path, there string, request StageRequest) (bool, error) {
	if there == "" {
		return request.ReadOnly, nil
	}
	before, err := m.recall(ctx, path)
	return before.readOnly, err
}

// recall returns what begin has remembered, also in an earlier process.
func (m *Mounter) recall(ctx context.Context, path string) (begun, error) {
	if before, ok := m.begun.Load(pathKey(path)); ok {
		return before.(begun), nil
	}
	text, problem, err := m.node.record(ctx, path)
	switch {
	case isUnimplemented(err) || err == nil && text+problem == "":
		return begun{}, nil
	case passes(ctx, err):
		return begun{}, err
	case err != nil:
		problem = err.Error()
	}
	var r record
	before := begun{kept: true}
	if problem == "" && json.Unmarshal([]byte(text), &r) != nil {
		problem = "it is damaged"
	}
	switch {
	case problem != "":
		klog.FromContext(ctx).Info("The record of a volume cannot be used", "path", path, "reason", problem)
		return before, nil
	case r.Disk != nil:
		before.source = *r.Disk
	case r.SMB != nil:
		before.source = *r.SMB
	case r.ISCSI != nil:
		before.source = *r.ISCSI
	}
	before.readOnly = r.ReadOnly
	return before, nil
}

// isForWriting reports whether the volume at a path, or at the end of a pod's link, was staged for writing.
func (m *Mounter) isForWriting(ctx context.Context, path string) bool {
	at, err := m.entryAt(ctx, path)
	if err == nil && at.kind == fsapi.LinkEntry {
		path, err = Path(at.target)
	}
	if err != nil {
		return false
	}
	before, err := m.recall(ctx, path)
	return err == nil && before.source != nil && !before.readOnly
}

// leaves notes that the volume at a path needs its target no more, which is locked.
func (m *Mounter) leaves(path string) {
	if value, ok := m.begun.Load(pathKey(path)); ok {
		left := value.(begun)
		left.leaves = true
		m.begun.Store(pathKey(path), left)
	}
}

// end forgets what recall has returned. A record that cannot be removed fails it once: the caller repeats it, and no record
// keeps a volume.
func (m *Mounter) end(ctx context.Context, path string, before begun) error {
	if before.kept {
		switch err := m.node.setRecord(ctx, path, ""); {
		case passes(ctx, err):
			return err
		case err != nil && !before.stays:
			before.stays = true
			m.begun.Store(pathKey(path), before)
			return err
		case err != nil:
			klog.FromContext(ctx).Info("The record of a volume stays", "path", path, "reason", err.Error())
		}
	}
	m.begun.Delete(pathKey(path))
	return nil
}

// drop is end for a volume that is not staged and will not be unstaged.
func (m *Mounter) drop(ctx context.Context, path string) {
	before, err := m.recall(ctx, path)
	if err == nil {
		before.stays = true // it is not repeated
		err = m.end(ctx, path, before)
	}
	if err != nil {
		klog.FromContext(ctx).Info("The record of a volume stays", "path", path, "reason", err.Error())
	}
}

// passes reports whether a repetition may not meet an error. Others keep no volume.
func passes(ctx context.Context, err error) bool {
	class := failure.ClassOf(err)
	return class == failure.Unavailable || class == failure.Busy || err != nil && ctx.Err() != nil
}

// isFinal reports whether the kubelet, after an error of NodeStageVolume, never asks to unstage the volume: see isFinalError in
// https://github.com/kubernetes/kubernetes/blob/master/pkg/volume/csi/csi_client.go.
func isFinal(err error) bool {
	asksAgain := []failure.Class{failure.Unavailable, failure.Busy, failure.Deadline, failure.Cancelled}
	return err != nil && !slices.Contains(asksAgain, failure.ClassOf(err))
}

// isBelowPlugins reports whether the kubelet stages volumes at a path, so that there can be a record.
func isBelowPlugins(path string) bool { return strings.Contains(pathKey(path), `\plugins\`) }
