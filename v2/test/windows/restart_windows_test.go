package windows_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

const (
	// restartFile is what -before-restart leaves in the folder, which -after-restart removes for it. It has the id of
	// the volume that is mounted, if one is.
	restartFile = "csi-proxy-verify-restart"
	// restartMount is the folder where that is mounted, with a file in it.
	restartMount = "mounted"
)

// persistent is the share whose mapping Windows makes again after the restart; see -mappings.
func (s *share) persistent() string { return s.remote + "1" }

// TestRestart_Before leaves a mapping and a mounted folder for TestRestart_After. Only -before-restart runs it.
func TestRestart_Before(t *testing.T) {
	if !*beforeRestart {
		t.Skip("-before-restart runs it, and nothing else")
	}
	ctx := limited(t, groupLimit)
	if share := this.share; share != nil {
		for _, remote := range []string{share.remote, share.persistent()} { // -after-restart removes them
			if _, err := this.machine.SMBMapping(ctx, remote); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s is mapped already, or that is unknown: %s; name a share that is not in use", remote, text(err))
			}
		}
	}
	must(t, os.WriteFile(this.path(restartFile), nil, 0o600)) // from now on there may be something to remove
	if share := this.share; share != nil {
		t.Run("Q-smb-restart", func(t *testing.T) {
			must(t, this.machine.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: share.remote, User: share.user, Password: share.password}))
			if this.mappings > 0 {
				must(t, this.machine.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: share.persistent(), User: share.user, Password: share.password, Persistent: true}))
			}
			_, err := this.machine.TargetInfo(ctx, win.Anywhere(share.remote))
			(&answer{t}).fact("before the restart: open the share", err)
		})
	}
	if this.fileBacked || this.noLinks != "" {
		t.Log("no folder is mounted: virtual disks do not survive a restart, and some file systems store no links")
		return
	}
	d, err := this.newDisk(ctx, 512)
	must(t, err)
	this.own = append(this.own, d) // for good
	id := this.newFormatted(t, d)
	dir, err := this.machine.OpenDirectory(ctx, win.Following(this.root))
	must(t, err)
	defer dir.Close()
	must(t, os.WriteFile(this.path(restartFile), []byte(id), 0o600))
	must(t, dir.CreateDirectory(ctx, restartMount))
	must(t, dir.SetMountPoint(ctx, restartMount, id))
	must(t, this.writeFile(winpath.Join(this.root, restartMount)+`\file`, "data"))
}

// TestRestart_After looks what a restart has left of that, and removes it. Only -after-restart runs it.
func TestRestart_After(t *testing.T) {
	if !*afterRestart {
		t.Skip("-after-restart runs it, and nothing else")
	}
	g := newGroup(t)
	ctx := g.Context()
	if share := g.share; share != nil {
		g.askShareAfterRestart(share)
	}
	content, err := os.ReadFile(g.path(restartFile))
	must(t, err)
	if len(content) == 0 {
		t.Log("no folder was mounted")
		return
	}
	id, mount := win.VolumeID(content), winpath.Join(g.root, restartMount)
	g.adoptDisk(id)
	// Restart with mounted folders: before a driver acts, mountvol lists them, files in them can be read, and
	// UnmountVolume works.
	g.ask("Q-reboot-mounts", func(a *answer) {
		paths, err := g.machine.VolumePaths(ctx, id)
		a.must(err)
		a.fact("the folder is listed", strings.Contains(winpath.Fold(fmt.Sprint(paths)), winpath.Fold(mount)))
		_, err = g.readFile(mount + `\file`)
		a.fact("a file in it can be read", err == nil)
		_, err = g.volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: string(id), TargetPath: mount})
		a.fact("UnmountVolume", err)
	})
}

// adoptDisk clears the disk of a volume in the end. Disks may have other numbers after a restart, so the operator must
// have named it again.
func (g *group) adoptDisk(id win.VolumeID) {
	g.Helper()
	disks, err := diskid.OfVolume(g.ctx, machine, id)
	if err != nil || len(disks) != 1 || !slices.Contains(g.named, disks[0]) {
		g.Errorf("volume %s on disks %v is left: %v; name its disk with -disk, or clear it with Clear-Disk", id, disks, err)
		return
	}
	g.keepDisk(g.T, &namedDisk{node: g.node, number: disks[0]})
}

// askShareAfterRestart asks about the mappings that were made before.
func (g *group) askShareAfterRestart(share *share) {
	ctx := g.Context()
	create := func(remote string) error { return g.mapShare(remote, share.user, share.password) }
	// What does opening a share return after a restart, with a mapping that lost its credentials and without one?
	// Expected: 86, 1219, 1272, 1312 or 1326, or 5 with a mapping. If not: node heal keeps the link, because other codes
	// prove nothing.
	g.ask("Q-stale-share", func(a *answer) {
		_, err := g.machine.TargetInfo(ctx, win.Anywhere(share.remote))
		a.fact("open the share", err)
		if g.mappings > 0 {
			_, err := g.machine.TargetInfo(ctx, win.Anywhere(share.persistent()))
			a.fact("open the share of a persistent mapping", err)
		}
	})
	// What does a restart leave? Expected: nothing of a mapping with Persistent=false. Persistent ones are listed as
	// disconnected; opens fail with 5, 53, 87, 1312 or 1326 and Create with 1219 until they are removed. If not: what is
	// left is judged like a persistent one; if opens fail with 53 and Create with 85, the mapping is kept as if the
	// server were away, and mapping fails with Unavailable until an operator removes it.
	g.ask("Q-smb-restart", func(a *answer) {
		mapping, err := g.machine.SMBMapping(ctx, share.remote)
		a.fact("the mapping is there", err)
		if err == nil {
			a.fact("its status", uint32(mapping.Status))
		}
		if g.mappings > 0 {
			mapping, err := g.machine.SMBMapping(ctx, share.persistent())
			a.fact("the persistent mapping is there", err)
			if err == nil {
				a.fact("the status of the persistent mapping", uint32(mapping.Status))
			}
			a.fact("Create the persistent mapping again", create(share.persistent()))
		}
		a.fact("Create again", create(share.remote))
		a.fact("Remove", g.machine.RemoveSMBMapping(ctx, share.remote, true))
		_, err = g.machine.TargetInfo(ctx, win.Anywhere(share.remote))
		a.fact("open the share without a mapping", err)
		a.fact("Create after that", create(share.remote))
		_, err = g.machine.TargetInfo(ctx, win.Anywhere(share.remote))
		a.fact("open the share then", err)
	})
	// After a restart, does a mapping of another share of the same server get in the way? Expected: yes. If not: only the
	// share's own mapping is removed.
	g.ask("Q-smb-restart-other", func(a *answer) {
		if g.mappings == 0 {
			a.Skip("needs a second share of the server; see -mappings")
		}
		_ = g.machine.RemoveSMBMapping(ctx, share.remote, true) // fails if it was not created
		a.fact("Create of another share", create(share.remote))
	})
}
