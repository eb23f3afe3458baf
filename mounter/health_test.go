package mounter

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// asked is a node that counts questions. It has no answer to others than those of Condition.
type asked struct {
	node
	share bool
	n     int
}

func (a *asked) mountedAt(context.Context, string) (string, error) {
	a.n++
	if a.share {
		return "", fs.ErrNotExist
	}
	return `\\?\Volume{1}\`, nil
}

func (a *asked) health(context.Context, string) (volumeapi.Health, error) {
	a.n++
	return volumeapi.Health{FileSystem: "NTFS", Dirty: true}, nil
}

func (a *asked) volumeSpace(context.Context, string) (Usage, error) { a.n++; return Usage{}, nil }
func (a *asked) pathSpace(context.Context, string) (Usage, error)   { a.n++; return Usage{}, nil }
func (a *asked) isLiveLink(context.Context, string) (bool, error)   { a.n++; return true, nil }

// TestCondition_Costs: kubelet asks for each volume once a minute.
func TestCondition_Costs(t *testing.T) {
	for _, share := range []bool{false, true} {
		a := &asked{share: share}
		m := &Mounter{node: a, closed: &atomic.Bool{}, writable: &sync.Map{}}
		if is, err := m.Condition(t.Context(), `C:\var\lib\kubelet\pods\1`); err != nil || is.Abnormal == share || a.n > 3 {
			t.Errorf("share %v: %+v, %v after %d questions", share, is, err, a.n)
		}
	}
}
