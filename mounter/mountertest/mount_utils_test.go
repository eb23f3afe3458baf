package mountertest_test

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/mount-utils"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestFormatAndMount: SafeFormatAndMount stages. That of mount-utils, which it has for code that wants one, neither panics
// nor runs a program, and leaves the disk alone.
func TestFormatAndMount(t *testing.T) {
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) {
			k := newKit(t, mode, blankNode())
			safe := mounter.NewSafeFormatAndMount(k.Mounter)
			fingerprint := func() string {
				print, err := k.node.DiskFingerprint(1)
				k.must(err)
				return print
			}
			blank := fingerprint()
			utils := safe.SafeFormatAndMount
			for name, err := range map[string]error{
				"FormatAndMount of mount-utils": utils.FormatAndMount("1", staging, "", nil),
				"its Exec":                      utils.Exec.Command("powershell").Run(),
				"a path as the source":          safe.FormatAndMount(staging, staging, "", nil),
				"format options":                safe.FormatAndMountSensitiveWithFormatOptions("1", staging, "", nil, nil, []string{"-q"}),
				"a blank disk, read-only":       safe.FormatAndMountSensitive("1", staging, "", nil, []string{"ro"}),
			} {
				if now := fingerprint(); err == nil || now != blank {
					t.Errorf("%s: %v, and the disk was written to: %t", name, err, now != blank)
				}
			}
			k.must(safe.FormatAndMount("1", staging, "ntfs", []string{"rw"}))
			k.must(safe.FormatAndMount("1", staging, "", nil)) // again
			if not, err := utils.IsLikelyNotMountPoint(staging); err != nil || not {
				t.Errorf("it is not a mount point: %t, %v", not, err)
			}
			k.must(utils.Unmount(staging))
		})
	}
}

// corruptedMounts are the codes that mount-utils takes for a corrupted mount.
var corruptedMounts = []uint32{53, 54, 59, 64, 65, 66, 67, 1219, 1326, 10064}

// TestCorruptedMount: what mount-utils takes for a corrupted mount is not a mount point and can be removed, so that drivers
// clean up.
func TestCorruptedMount(t *testing.T) {
	if runtime.GOOS == "windows" { // where mount-utils has the codes of Windows
		known := slices.Collect(func(yield func(uint32) bool) {
			for code := range uint32(12000) {
				if mount.IsCorruptedMnt(&os.PathError{Err: syscall.Errno(code)}) && !yield(code) {
					return
				}
			}
		})
		if !slices.Equal(known, corruptedMounts) {
			t.Errorf("mount-utils knows %d", known)
		}
	}
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		k := newKit(t, mode, blankNode())
		for _, code := range corruptedMounts {
			k.must(k.stageShare())
			var injected []*winsim.Injection
			for _, call := range []string{"TargetInfo", "FileInfo"} {
				injection, err := k.node.Inject(winsim.Fault{Call: call, Object: "*files*", Error: code})
				k.must(err)
				injected = append(injected, injection)
			}
			not, err := k.IsLikelyNotMountPoint(staging)
			unmountErr := k.Unmount(staging)
			if err != nil || !not || unmountErr != nil || strings.Contains(k.node.Tree(staging), "files") {
				t.Errorf("%s, %d: not a mount point: %t, %v, unmount %v", mode, code, not, err, unmountErr)
			}
			hits := 0
			for _, i := range injected {
				hits += i.Hits()
				i.Remove()
			}
			if hits == 0 {
				t.Fatal("the code was never met")
			}
		}
	}
}
