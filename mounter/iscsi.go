package mounter

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// ISCSI is a disk of an iSCSI target. Stage does not support it yet.
type ISCSI struct{}

func (s ISCSI) check(r StageRequest) error {
	if err := checkFileSystem(r); err != nil {
		return err
	}
	return newError(failure.Unsupported, opCheck, "", "iSCSI is not supported yet; log in with package iscsi, and stage the Disk")
}

// stage looks at the path first, m.checkFree, then finds the disk, and goes on as with a Disk: m.stageDisk.
func (s ISCSI) stage(context.Context, *Mounter, string, StageRequest) (Staged, error) {
	return Staged{}, nil
}

func (s ISCSI) release(context.Context, *Mounter, string, UnstageRequest) error { return nil }

func (s ISCSI) keys() Source { return s }
