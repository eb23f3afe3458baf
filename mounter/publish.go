package mounter

import (
	"context"
	"errors"
	"io/fs"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
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
// A link cannot be read-only: the kubelet makes the container's mount read-only.
func (m *Mounter) Publish(ctx context.Context, stagingPath, targetPath string) error {
	staging, err := m.path(stagingPath)
	if err != nil {
		return during(opPublish, targetPath, err)
	}
	target, err := m.path(targetPath)
	if err != nil {
		return during(opPublish, targetPath, err)
	}
	if pathKey(staging) == pathKey(target) {
		return during(opPublish, target, newError(failure.Invalid, "check request", "", "the target is the staging path"))
	}
	unlock, err := m.locks.paths(ctx, staging, target)
	if err != nil {
		return during(opPublish, target, err)
	}
	defer unlock()
	if err := m.checkStaged(ctx, staging); err != nil {
		return during(opPublish, target, err)
	}
	return during(opPublish, target, m.bind(ctx, staging, target))
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

func (m *Mounter) bind(ctx context.Context, source, target string) error {
	klog.FromContext(ctx).V(4).Info("Publishing", "source", source, "target", target)
	if dir, ok := parent(target); ok {
		if err := m.node.makeDir(ctx, dir); err != nil {
			return err
		}
	}
	m.links.add(target, source) // before it is there, so that no link is missed
	err := m.node.link(ctx, target, source)
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
