package mounter

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

const (
	opPublish   = "publish volume at"
	opUnpublish = "unpublish volume at"
)

// Publish makes a staged volume appear at a pod's path, as a link to the staging path. It makes the
// folder of the link, and replaces an empty folder and a link that leads nowhere. A link that
// leads to another volume stays, and is an error that matches fs.ErrExist. If nothing is staged at
// the staging path, the code of the error is FailedPrecondition.
//
// With the source of the volume, a share that does not answer is connected again first, as Stage does: the kubelet calls
// Stage only once. A share that answers stays as it is, and other sources have no effect.
//
// A link cannot be read-only: the kubelet makes the container's mount read-only.
func (m *Mounter) Publish(ctx context.Context, stagingPath, targetPath string, source ...Source) error {
	staging, err := m.path(stagingPath)
	if err != nil {
		return during(opPublish, targetPath, err)
	}
	target, err := m.path(targetPath)
	if err != nil {
		return during(opPublish, targetPath, err)
	}
	if pathKey(staging) == pathKey(target) {
		return during(opPublish, target, newError(failure.Invalid, opCheck, "", "the target is the staging path"))
	}
	share, err := shareOf(source)
	if err != nil {
		return during(opPublish, target, err)
	}
	unlock, err := m.locks.paths(ctx, staging, target)
	if err != nil {
		return during(opPublish, target, err)
	}
	defer unlock()
	if share != nil {
		err = m.heal(ctx, staging, *share)
	} else {
		err = m.checkStaged(ctx, staging)
	}
	if err != nil {
		return during(opPublish, target, err)
	}
	return during(opPublish, target, m.bind(ctx, staging, target))
}

// shareOf returns the share of a request, or nil.
func shareOf(sources []Source) (*SMB, error) {
	if len(sources) == 0 || len(sources) == 1 && sourceOf(sources[0]) == nil {
		return nil, nil
	}
	source := sourceOf(sources[0])
	if len(sources) > 1 {
		return nil, newError(failure.Invalid, opCheck, "", "it has %d sources; give one", len(sources))
	}
	share, ok := source.(SMB)
	if err := source.check(StageRequest{}); err != nil || !ok {
		return nil, err
	}
	return &share, nil
}

// healLimit is how long Publish waits for a share to be connected again. Windows goes on, and the next call joins it.
const healLimit = 30 * time.Second

// heal connects the share at a staging path again if it does not answer.
func (m *Mounter) heal(ctx context.Context, staging string, share SMB) error {
	live, err := soon(ctx, staging, m.node.isLiveLink)
	if live || ctx.Err() != nil {
		return err
	}
	share.Remote = shareName(share.Remote)
	switch at, entryErr := m.entryAt(ctx, staging); {
	case entryErr != nil || at.kind != fsapi.LinkEntry: // Stage has not been here, or Unstage has
		return m.checkStaged(ctx, staging)
	case !at.guessed && pathKey(shareName(at.target)) != pathKey(share.Remote):
		return newError(failure.Exists, "look at", staging, "%s is staged there, not %s", shareName(at.target), share.Remote)
	}
	if err := m.refused.check(share); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Connecting a share again", "remote", share.Remote, "path", staging, "err", err)
	limited, cancel := context.WithTimeout(ctx, healLimit)
	defer cancel()
	err = m.node.mapShare(limited, share, staging)
	m.refused.note(share, err)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return newError(failure.Unavailable, "connect share", share.Remote, "the server does not answer; try again")
	}
	return err
}

func (m *Mounter) checkStaged(ctx context.Context, staging string) error {
	live, err := m.node.isLiveLink(ctx, staging)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !live {
		if err := m.whyDead(ctx, staging); err != nil {
			return err
		}
		return newError(failure.InUse, "look at", staging, "no volume is staged there, or it cannot be reached; stage the volume first")
	}
	return nil
}

func (m *Mounter) bind(ctx context.Context, source, target string) (err error) {
	klog.FromContext(ctx).V(4).Info("Publishing", "source", source, "target", target)
	if dir, ok := parent(target); ok {
		if err := m.node.makeDir(ctx, dir); err != nil {
			return err
		}
	}
	before := m.links.add(target, source) // before it is there, so that no link is missed
	defer func() {
		if err != nil && before != "" { // it may still lead to the other volume
			m.links.add(target, before)
		}
	}()
	err = m.node.link(ctx, target, source)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if cleared, clearErr := m.clearForLink(ctx, target); clearErr != nil {
		return clearErr
	} else if !cleared {
		return newError(failure.Exists, "link", target, "it is a link or mount of another volume; unpublish that volume first")
	}
	return m.node.link(ctx, target, source)
}

// Unpublish removes a pod's link. The volume and its data stay. If nothing is there, Unpublish
// succeeds. It fails if the path is a folder with content.
func (m *Mounter) Unpublish(ctx context.Context, targetPath string) error {
	target, err := m.path(targetPath)
	if err != nil {
		return during(opUnpublish, targetPath, err)
	}
	unlock, err := m.locks.paths(ctx, target)
	if err != nil {
		return during(opUnpublish, target, err)
	}
	defer unlock()
	klog.FromContext(ctx).V(4).Info("Unpublishing", "target", target)
	err = m.remove(ctx, target)
	if err == nil {
		m.links.forget(target)
	}
	return during(opUnpublish, target, err)
}
