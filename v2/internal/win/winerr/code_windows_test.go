package winerr_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestCode_IsErrno(t *testing.T) {
	err := winerr.Wrap("open", `C:\x`, winerr.AccessDenied)
	if !errors.Is(err, syscall.ERROR_ACCESS_DENIED) || errors.Is(err, syscall.ERROR_FILE_NOT_FOUND) {
		t.Errorf("%v does not match the system's error of that number, or another one", err)
	}
}
