//go:build !windows

package winerr_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// TestCode_IsNoErrno: 5 is "access denied" on Windows and an I/O error here.
func TestCode_IsNoErrno(t *testing.T) {
	if err := winerr.AccessDenied; errors.Is(err, syscall.Errno(5)) {
		t.Errorf("%v matches %v", err, syscall.Errno(5))
	}
}
