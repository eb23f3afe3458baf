package local

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// TestSMBError: codes are the same whichever way they come.
func TestSMBError(t *testing.T) {
	failure := errors.New("lightning")
	for _, c := range []struct {
		result uint32
		err    error
		want   error
	}{
		{0, nil, nil},
		{53, nil, winerr.BadNetPath},
		{0x80070035, nil, winerr.BadNetPath},
		{0x800704C3, nil, winerr.CredentialConflict},
		{0, winerr.LogonFailure, winerr.LogonFailure},
		{0, fmt.Errorf("WMI: %w", winerr.WMINotFound), winerr.FileNotFound},
		{2250, nil, winerr.FileNotFound},
		{0x80041002, nil, winerr.FileNotFound},
		{0x80041001, nil, winerr.Code(0x80041001)},
		{0, failure, failure},
	} {
		if got := smbError(c.result, c.err); got != c.want {
			t.Errorf("%#x, %v: %v, want %v", c.result, c.err, got, c.want)
		}
	}
}

// TestBestMapping: of several mappings of a share that counts which is most use.
func TestBestMapping(t *testing.T) {
	dead := win.SMBMapping{Remote: "dead", Status: win.SMBDisconnected}
	plain := win.SMBMapping{Remote: "plain", Plain: true}
	private := win.SMBMapping{Remote: "private"}
	for _, c := range []struct {
		found []win.SMBMapping
		want  string
	}{
		{[]win.SMBMapping{dead}, "dead"},
		{[]win.SMBMapping{dead, plain}, "plain"},
		{[]win.SMBMapping{dead, plain, private}, "private"},
		{[]win.SMBMapping{private, plain, dead}, "private"},
	} {
		if got, err := bestMapping(c.found); err != nil || got.Remote != c.want {
			t.Errorf("of %v: %v, %v, want %s", c.found, got, err, c.want)
		}
	}
	if _, err := bestMapping(nil); err != winerr.FileNotFound {
		t.Errorf("of none: %v, want code 2", err)
	}
}
