package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func newPolicy(t *testing.T, dirs ...string) *policy.Policy {
	t.Helper()
	p, err := policy.New(dirs)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPolicy(t *testing.T) {
	p := newPolicy(t, `C:\var\lib\kubelet`, `d:\data\`)
	for _, c := range []struct {
		path          string
		inside, below error // nil: allowed
	}{
		{`C:\var\lib\kubelet\pods`, nil, nil},
		{`c:\VAR\lib\KUBELET\x\y`, nil, nil},
		{`D:\DATA\x`, nil, nil},
		{`C:\var\lib\kubelet`, nil, winerr.Denied},
		{`C:\var\lib\kubelet\`, nil, winerr.Denied},
		{`c:\var\lib\KUBELET\`, nil, winerr.Denied},
		{`D:\data`, nil, winerr.Denied},
		{`C:\var\lib\kubelet-evil`, winerr.Denied, winerr.Denied},
		{`C:\var\lib`, winerr.Denied, winerr.Denied},
		{`C:\`, winerr.Denied, winerr.Denied},
		{`C:\Windows`, winerr.Denied, winerr.Denied},
		{`E:\data\x`, winerr.Denied, winerr.Denied},
		{`C:\var\lib\kubelet\..\x`, winerr.Invalid, winerr.Invalid},
		{`\\?\C:\var\lib\kubelet\x`, winerr.Invalid, winerr.Invalid},
		{``, winerr.Invalid, winerr.Invalid},
	} {
		if err := p.Inside("test", c.path); !errors.Is(err, c.inside) {
			t.Errorf("Inside(%q) = %v, want %v", c.path, err, c.inside)
		}
		if err := p.Below("test", c.path); !errors.Is(err, c.below) {
			t.Errorf("Below(%q) = %v, want %v", c.path, err, c.below)
		}
	}
}

func TestPolicy_NestedWorkingDirectories(t *testing.T) {
	p := newPolicy(t, `C:\data`, `C:\data\deep\inner`)
	if err := p.Below("test", `C:\data\deep`); !errors.Is(err, winerr.Denied) {
		t.Errorf("removing a directory that holds a working directory: %v, want it denied", err)
	}
}

func TestNew_Refuses(t *testing.T) {
	for _, dirs := range [][]string{nil, {`relative`}, {`C:\ok`, `\\server\share`}} {
		if _, err := policy.New(dirs); err == nil {
			t.Errorf("New(%q) succeeded", dirs)
		}
	}
}

// TestFilesystem_GuardsEveryMethod calls each method outside the working directories
// on a node where it would succeed without the guard, and sees nothing change.
func TestFilesystem_GuardsEveryMethod(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := filesystem.New(node.Filesystem())
	if err != nil {
		t.Fatal(err)
	}
	guarded := newPolicy(t, `C:\var\lib\kubelet`).Filesystem(inner)
	const outside, inside = `C:\Windows\System32`, `C:\var\lib\kubelet\x`
	before := node.Tree(`C:\`)
	ctx := t.Context()
	node.ResetCalls()
	for name, call := range map[string]func() error{
		"CreateSymlink to": func() error {
			_, err := guarded.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: outside, TargetPath: inside})
			return err
		},
		"CreateSymlink at": func() error {
			_, err := guarded.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: inside, TargetPath: outside + `\x`})
			return err
		},
		"IsSymlink": func() error {
			_, err := guarded.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: outside})
			return err
		},
		"Mkdir": func() error {
			_, err := guarded.Mkdir(ctx, &filesystem.MkdirRequest{Path: outside + `\x`})
			return err
		},
		"PathExists": func() error {
			_, err := guarded.PathExists(ctx, &filesystem.PathExistsRequest{Path: outside})
			return err
		},
		"Rmdir": func() error {
			_, err := guarded.Rmdir(ctx, &filesystem.RmdirRequest{Path: outside, Force: true})
			return err
		},
		"RmdirContents": func() error {
			_, err := guarded.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: outside})
			return err
		},
		"Rmdir of the working directory": func() error {
			_, err := guarded.Rmdir(ctx, &filesystem.RmdirRequest{Path: `C:\var\lib\kubelet`, Force: true})
			return err
		},
		"RmdirContents of the working directory": func() error {
			_, err := guarded.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: `C:\var\lib\kubelet\`})
			return err
		},
	} {
		if err := call(); !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), `C:\var\lib\kubelet`) {
			t.Errorf("%s outside: %v, want it denied with the allowed directories named", name, err)
		}
	}
	if after := node.Tree(`C:\`); after != before {
		t.Errorf("the node changed:\n%s", after)
	}
	if calls := node.Calls(); len(calls) != 0 {
		t.Errorf("the node was asked: %v", calls)
	}
}
