package mounter

import (
	"context"
	"io/fs"
	"sync/atomic"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// asked counts questions. It has no answer to others than those of Condition.
type asked struct {
	volume.Extended
	share bool
	n     int
}

func (a *asked) GetVolumeIDFromTargetPath(context.Context, *volume.GetVolumeIDFromTargetPathRequest) (*volume.GetVolumeIDFromTargetPathResponse, error) {
	a.n++
	if a.share {
		return nil, fs.ErrNotExist
	}
	return &volume.GetVolumeIDFromTargetPathResponse{VolumeID: `\\?\Volume{1}\`}, nil
}

func (a *asked) Health(context.Context, string) (volume.Health, error) {
	a.n++
	return volume.Health{FileSystem: "NTFS", Dirty: true}, nil
}

func (a *asked) GetVolumeStats(context.Context, *volume.GetVolumeStatsRequest) (*volume.GetVolumeStatsResponse, error) {
	a.n++
	return &volume.GetVolumeStatsResponse{}, nil
}

// askedFiles is the group filesystem of asked.
type askedFiles struct {
	filesystem.Extended
	*asked
}

func (a askedFiles) GetPathStats(context.Context, *filesystem.GetPathStatsRequest) (*filesystem.GetPathStatsResponse, error) {
	a.n++
	return &filesystem.GetPathStatsResponse{}, nil
}

func (a askedFiles) IsSymlink(context.Context, *filesystem.IsSymlinkRequest) (*filesystem.IsSymlinkResponse, error) {
	a.n++
	return &filesystem.IsSymlinkResponse{IsSymlink: true}, nil
}

// TestCondition_Costs: kubelet asks for each volume once a minute.
func TestCondition_Costs(t *testing.T) {
	for _, share := range []bool{false, true} {
		a := &asked{share: share}
		m := &Mounter{node: &node{vols: a, files: askedFiles{asked: a}}, closed: &atomic.Bool{}}
		if condition, err := m.Condition(t.Context(), `C:\var\lib\kubelet\pods\1`); err != nil || condition.Abnormal == share || a.n > 3 {
			t.Errorf("share %v: %+v, %v after %d questions", share, condition, err, a.n)
		}
	}
}
