package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func newPolicy(t *testing.T, dirs ...string) *policy.Policy {
	t.Helper()
	p, err := policy.New(dirs)
	require.NoError(t, err)
	return p
}

var everyAccess = []policy.Access{policy.Read, policy.Enter, policy.Show, policy.Create, policy.Link, policy.Mount, policy.Unmount, policy.Remove}

// keeps says which accesses leave a working directory alone.
func keeps(a policy.Access) bool {
	return a == policy.Show || a == policy.Link || a == policy.Mount || a == policy.Unmount || a == policy.Remove
}

func TestCheck(t *testing.T) {
	p := newPolicy(t, `C:\var\lib\kubelet`, `d:\data\`)
	for path, want := range map[string]string{
		`C:\var\lib\kubelet\pods`: "inside",
		`c:\VAR\lib\KUBELET\x\y`:  "inside",
		`D:\DATA\x`:               "inside",
		`C:\var\lib\kubelet`:      "itself",
		`C:\var\lib\KUBELET`:      "itself",
		`D:\data`:                 "itself",
		`C:\var\lib\kubelet-evil`: "outside",
		`C:\var\lib\kubele`:       "outside",
		`C:\var\lib`:              "outside",
		`C:\`:                     "outside",
		`C:\Windows`:              "outside",
		`E:\data\x`:               "outside",
	} {
		for _, access := range everyAccess {
			err := p.Check("test", path, access)
			allowed := want == "inside" || (want == "itself" && !keeps(access))
			if allowed != (err == nil) || (err != nil && !errors.Is(err, winerr.Denied)) {
				t.Errorf("access %d to %s: %v, want it to count as %s", access, path, err, want)
			}
			if want == "outside" && !strings.Contains(err.Error(), `C:\var\lib\kubelet, D:\data`) {
				t.Errorf("%v does not name the working directories", err)
			}
		}
		var unlimited *policy.Policy
		require.NoError(t, unlimited.Check("test", path, policy.Remove), "without a policy:")
	}
}

func TestCheck_NestedWorkingDirectories(t *testing.T) {
	p := newPolicy(t, `C:\data`, `C:\data\deep\inner`)
	for _, path := range []string{`C:\data\deep`, `C:\data\deep\inner`, `C:\DATA\DEEP`} {
		for _, access := range everyAccess {
			if err := p.Check("test", path, access); errors.Is(err, winerr.Denied) != keeps(access) {
				t.Errorf("access %d to %s, which holds a working directory: %v", access, path, err)
			}
		}
	}
	require.NoError(t, p.Check("test", `C:\data\deep\inner2`, policy.Remove))
}

func TestNew_Refuses(t *testing.T) {
	for _, dirs := range [][]string{nil, {`relative`}, {`C:\ok`, `\\server\share`}, {`C:\ok\..\x`}} {
		if _, err := policy.New(dirs); err == nil {
			t.Errorf("New(%q) succeeded", dirs)
		}
	}
}

// TestNew_FoldersOfWindows: a caller may not have a whole drive, or what Windows, programs and users need.
func TestNew_FoldersOfWindows(t *testing.T) {
	t.Setenv("SystemRoot", `D:\WinNT`)
	for dir, refused := range map[string]bool{
		`C:\`: true, `D:\`: true, `z:\`: true,
		`C:\Windows`: true, `c:\WINDOWS\System32`: true, `E:\Windows\x`: true, `D:\winnt`: true, `D:\winnt\temp`: true,
		`C:\Program Files`: true, `C:\Program Files\csi-proxy`: true, `C:\Program Files (x86)`: true,
		`C:\Users`: true, `C:\Users\Public`: true,
		`C:\var\lib\kubelet`: false, `C:\var`: false, `C:\k`: true, `c:\K\x`: true, `C:\kubelet`: false, `D:\kubelet`: false, `C:\WindowsData`: false,
		`C:\ProgramData`: true, `C:\programdata\containerd\root`: true, `C:\etc`: true, `C:\etc\kubernetes`: true, `C:\etc\kubernetes\pki`: true,
		`C:\etc\csi`: false, `C:\csi\Windows`: false,
	} {
		_, err := policy.New([]string{`C:\csi`, dir})
		if refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "-allow-unsafe-working-dirs") {
			t.Errorf("%s: %v, want refused %v", dir, err, refused)
		}
		unchecked, err := policy.NewUnsafe([]string{dir})
		if err != nil || (unchecked.Unsafe() != nil) != refused {
			t.Errorf("%s, insisted: %v, %v", dir, unchecked.Unsafe(), err)
		}
	}
}

type foreign struct{}

func TestLimit_ForeignHost(t *testing.T) {
	if _, err := policy.Limit(foreign{}, []string{`C:\x`}); err == nil || !strings.Contains(err.Error(), "policy_test.foreign") {
		t.Errorf("%v, want an error that names the host's type", err)
	}
}
