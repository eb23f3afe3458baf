//go:build windows

package winsim_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestMirrorDrives_Share: links to shares carry the share's name, since csi-driver-smb takes
// what os.Readlink returns for the share to unmount. The directory and the server are those that
// test/wine/suite prepares: there \\srv.example\share leads to the emulated share.
func TestMirrorDrives_Share(t *testing.T) {
	probe := t.TempDir()
	mustAll(t, os.Mkdir(filepath.Join(probe, "dir"), 0o700))
	_ = os.Symlink(filepath.Join(probe, "dir"), filepath.Join(probe, "link"))
	if _, err := os.Readlink(filepath.Join(probe, "link")); err != nil {
		t.Skipf("this machine has no symbolic links: %v", err)
	}
	const dir, remote = `C:\winsim-links`, `\\srv.example\share`
	model := winsim.Default()
	model.SMBServers = []winsim.SMBServer{{
		Name:     "srv.example",
		Shares:   []winsim.SMBShare{{Name: "Share", Files: []winsim.File{{Path: `\sub\file`, Content: "on the share"}}}},
		Accounts: []winsim.SMBAccount{{User: "u", Password: "p"}},
	}}
	node, err := winsim.New(model)
	mustAll(t, err, node.Mkdir(dir))
	stop, err := node.MirrorDrives([]string{dir}, func(err error) { t.Error(err) })
	mustAll(t, err)
	defer os.RemoveAll(dir)
	defer stop()
	files, err := filesystem.New(node.Filesystem(), filesystem.WorkingDirs(dir))
	mustAll(t, err)
	shares, err := smb.New(node.SMB(), files, smb.WorkingDirs(dir))
	mustAll(t, err)

	staged, published, again := dir+`\staged`, dir+`\pods\mount`, dir+`\pods\again`
	_, err = shares.NewSMBGlobalMapping(t.Context(), &smb.NewSMBGlobalMappingRequest{RemotePath: remote, LocalPath: staged, Username: "u", Password: "p"})
	mustAll(t, err)
	_, err = files.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: dir + `\pods`})
	mustAll(t, err)
	_, err = files.CreateSymlink(t.Context(), &filesystem.CreateSymlinkRequest{SourcePath: staged, TargetPath: published})
	mustAll(t, err)
	for link, want := range map[string]string{staged: remote + `\`, published: staged} {
		if text, err := os.Readlink(link); err != nil || text != want {
			t.Errorf("%s leads to %q, %v; want %q", link, text, err, want)
		}
	}

	// A link that a driver makes itself is a link of the node.
	mustAll(t, os.Symlink(remote+`\sub`, again))
	if text, err := node.ReadFile(again + `\file`); err != nil || text != "on the share" {
		t.Errorf("through a link of another process: %q, %v", text, err)
	}

	if os.Getenv("WINSIM_TEST_UNC") != "" { // the machine finds the share
		for _, path := range []string{staged, published} {
			if text, err := os.ReadFile(path + `\sub\file`); err != nil || string(text) != "on the share" {
				t.Errorf("%s: %q, %v", path, text, err)
			}
		}
		mustAll(t, os.WriteFile(published+`\sub\new`, []byte("of the pod"), 0o600))
		if text, err := node.ReadFile(staged + `\sub\new`); err != nil || text != "of the pod" {
			t.Errorf("what a pod wrote: %q, %v", text, err)
		}
	}

	_, err = files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: published})
	mustAll(t, err)
	_, err = files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: staged})
	mustAll(t, err)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 { // pods, and the simulator's own
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if !node.Exists(remote + `\sub\file`) {
		t.Error("removing the links removed the file on the share")
	}
}
