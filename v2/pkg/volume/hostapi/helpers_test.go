package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	pods = `C:\var\lib\kubelet\pods`

	// firstDisk is the number of the first disk that is not the system's.
	firstDisk = 1
)

// volumeID makes ids that sort against the order in which tests number them.
func volumeID(number int) string {
	return fmt.Sprintf(`\\?\Volume{%08x-0000-4000-8000-000000000000}\`, 0xffff-number)
}

// id is the volume that most tests use.
var id = volumeID(1)

// modelWith is a node with a system disk and the given ones, which get the numbers from 1.
func modelWith(disks ...winsim.Disk) winsim.Model {
	model := winsim.Default()
	model.Disks = append(model.Disks[:1:1], disks...)
	return model
}

// gpt is a disk with one partition that is the given volume.
func gpt(size winsim.Size, v winsim.Volume) winsim.Disk {
	return winsim.Disk{Size: size, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "msr"}, {Volume: &v}}}
}

func formatted() winsim.Volume {
	return winsim.Volume{ID: id, Files: []winsim.File{{Path: `\precious`, Content: "data"}}}
}

func unformatted() winsim.Volume {
	return winsim.Volume{ID: id, FileSystem: winsim.FileSystemNone}
}

func newNode(t testing.TB, model winsim.Model) *winsim.Node {
	t.Helper()
	node, err := winsim.New(model)
	must(t, err)
	t.Cleanup(func() {
		if open := node.OpenDirectories(); open != 0 {
			t.Errorf("%d directories stay open", open)
		}
	})
	t.Cleanup(node.Reboot) // ends what hangs
	return node
}

// nodeWith is a node with one volume on a disk of 1 GiB.
func nodeWith(t testing.TB, v winsim.Volume) *winsim.Node {
	t.Helper()
	return newNode(t, modelWith(gpt(winsim.GiB, v)))
}

// inject lets a fault loose for the rest of the test.
func inject(t testing.TB, node *winsim.Node, f winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := node.Inject(f)
	must(t, err)
	t.Cleanup(injection.Remove) // releases what it holds
	return injection
}

var must = require.NoError

// wantKind checks the class of an error, and that the error names its object.
func wantKind(t testing.TB, what string, err error, kind winerr.Kind, object string) {
	t.Helper()
	if winerr.KindOf(err) != kind || err == nil {
		t.Errorf("%s: got error %v, want one of kind %q", what, err, kind)
		return
	}
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), object) {
		t.Errorf("%s: the error %q does not match its kind, or does not name %s", what, err, object)
	}
}

func wantCalls(t testing.TB, node *winsim.Node, call string, want int) {
	t.Helper()
	if got := node.Calls()[call]; got != want {
		t.Errorf("%d calls of %s were made, want %d", got, call, want)
	}
}

func wantFormatted(t testing.TB, host volumeapi.HostAPI, volume string, want bool) {
	t.Helper()
	if got, err := host.IsVolumeFormatted(volume); err != nil || got != want {
		t.Errorf("IsVolumeFormatted(%s) = %v, %v, want %v", volume, got, err, want)
	}
}

// wantMounted checks what is mounted at a path, "" for nothing.
func wantMounted(t testing.TB, host volumeapi.HostAPI, path, want string) {
	t.Helper()
	got, err := host.GetVolumeIDFromTargetPath(path)
	if want == "" && errors.Is(err, winerr.NotFound) {
		return
	}
	if err != nil || got != want {
		t.Errorf("at %s is %q, %v, want %q", path, got, err, want)
	}
}

// fingerprint changes when anything on the disks of a node does.
func fingerprint(t testing.TB, node *winsim.Node) (all string) {
	t.Helper()
	for disk := range uint32(8) {
		if one, err := node.DiskFingerprint(disk); err == nil {
			all += one + "\n"
		}
	}
	return all
}
