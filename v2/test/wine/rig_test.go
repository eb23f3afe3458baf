//go:build linux && wine

// Package wine tests the daemon as it is, csi-proxy.exe, on an emulated node below its
// system calls. The README says how.
package wine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/call"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/devices"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/wmi"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/rig"
)

func TestMain(m *testing.M) {
	prefix.CloseOnSignal()
	m.Run()
}

// TestRig makes the same calls to the daemon under Wine and to one that has the emulated
// node in itself. Whatever the first one does with Windows' structures, control codes and
// WMI, the answers have to be the same.
func TestRig(t *testing.T) {
	build(t)
	for _, preset := range devices.Presets() {
		t.Run(preset, func(t *testing.T) {
			began := time.Now()
			r := start(t, rig.Config{Preset: preset})
			t.Logf("started after %s", time.Since(began))
			calls := append(diskCalls(t, preset), smbCalls...)
			answers, err := r.Call(t.Context(), calls...)
			if err != nil {
				t.Fatalf("%v\n%s", err, r.DaemonLog())
			}
			t.Logf("answered after %s:\n%s", time.Since(began), strings.Join(transcript(calls, answers), "\n"))
			got, want := transcript(calls, answers), transcript(calls, emulate(t, preset, calls))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the daemon under Wine answers otherwise than over the emulated node (-emulated +Wine):\n%s\n%s", diff, r.DaemonLog())
			}
			if got := codes(r.Requests()); preset == devices.Odd && !cmp.Equal(got, allCodes) {
				t.Errorf("the node was asked %s, want %s", got, allCodes)
			}
			require.NoError(t, r.Stop(), "stop the daemon:")
		})
	}
}

// allCodes are the control codes that the daemon can send, except those for links: such as
// winioctl.h has, 0x222040 for WMI, and 0x6d0008, which FindFirstVolume sends.
var allCodes = []string{
	"0x222040", "0x2d1080", "0x2d1400", "0x41018", "0x560000", "0x56c008", "0x6d0008", "0x70050", "0x700a0", "0x700f0", "0x70140",
	"0x7c054", "0x7c058", "0x7c0c8", "0x7c0d0", "0x7c0f4", "0x90064", "0x90078", "0x900f0",
}

// codes lists the control codes that a node server was asked, each once.
func codes(requests string) []string {
	seen := regexp.MustCompile(`function 0xe, code (\S+)`).FindAllStringSubmatch(requests, -1)
	list := make([]string, len(seen))
	for i, match := range seen {
		list[i] = match[1]
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// diskCalls are calls about all disks of a node, and the life of a volume on each of those
// that are empty.
func diskCalls(t *testing.T, preset string) []string {
	t.Helper()
	model, err := devices.Model(preset)
	require.NoError(t, err)
	calls := []string{"v1.Disk/ListDiskIDs", "v1.Disk/ListDiskLocations"}
	add := func(format string, number uint32) { calls = append(calls, fmt.Sprintf(format, number)) }
	for _, disk := range model.Disks {
		add(`v1.Disk/GetDiskStats {"diskNumber":%d}`, disk.Number)
		add(`v1.Disk/GetDiskState {"diskNumber":%d}`, disk.Number)
		add(`v1.Disk/PartitionDisk {"diskNumber":%d}`, disk.Number)
		add(`v1.Disk/PartitionDisk {"diskNumber":%d}`, disk.Number)
		add(`v1.Disk/GetDiskState {"diskNumber":%d}`, disk.Number)
		add(`v2alpha1.Volume/ListVolumesOnDisk {"diskNumber":%d}`, disk.Number)
		calls = append(calls,
			`v2alpha1.Volume/GetDiskNumberFromVolumeID {"volumeId":$volume}`,
			`v2alpha1.Volume/IsVolumeFormatted {"volumeId":$volume}`,
			`v2alpha1.Volume/FormatVolume {"volumeId":$volume}`,
			`v2alpha1.Volume/FormatVolume {"volumeId":$volume}`,
			`v2alpha1.Volume/IsVolumeFormatted {"volumeId":$volume}`,
			`v2alpha1.Volume/GetVolumeStats {"volumeId":$volume}`,
			`v2alpha1.Volume/WriteVolumeCache {"volumeId":$volume}`,
			`v2alpha1.Volume/ResizeVolume {"volumeId":$volume}`,
			`v2alpha1.Volume/GetVolumeStats {"volumeId":$volume}`,
			`csiproxy.extension.v1.VolumeHealth/CheckVolume {"id":$volume}`,
		)
		add(`v1.Disk/GetDiskStats {"diskNumber":%d}`, disk.Number)
		add(`v1.Disk/SetDiskState {"diskNumber":%d,"isOnline":false}`, disk.Number)
		add(`v1.Disk/GetDiskState {"diskNumber":%d}`, disk.Number)
		calls = append(calls, `v2alpha1.Volume/GetVolumeStats {"volumeId":$volume}`)
		add(`v1.Disk/SetDiskState {"diskNumber":%d,"isOnline":true}`, disk.Number)
		add(`v1.Disk/PartitionDisk {"diskNumber":%d}`, disk.Number) // which waits for the volume
		add(`v2alpha1.Volume/ListVolumesOnDisk {"diskNumber":%d}`, disk.Number)
	}
	add(`v1.Disk/GetDiskStats {"diskNumber":%d}`, devices.FirstDisk-1+uint32(len(model.Disks)+1))
	return append(calls, `v2alpha1.Volume/GetClosestVolumeIDFromTargetPath {"targetPath":"C:\\var\\lib\\kubelet"}`)
}

// smbCalls are calls about shares. The default node has one; on others there is no server to
// answer. Links to shares are not among them, which Wine cannot make.
var smbCalls = []string{
	`v1.Smb/NewSmbGlobalMapping {"remotePath":"\\\\files\\data","username":"csi","password":"wrong"}`,
	`v1.Smb/NewSmbGlobalMapping {"remotePath":"\\\\files\\missing","username":"csi","password":"csi-Pa55"}`,
	`v1.Smb/NewSmbGlobalMapping {"remotePath":"\\\\files\\data","username":"DOMAIN\\csi","password":"csi-Pa55"}`,
	`v1.Smb/NewSmbGlobalMapping {"remotePath":"\\\\files\\data","username":"DOMAIN\\csi","password":"csi-Pa55"}`,
	`v1.Smb/RemoveSmbGlobalMapping {"remotePath":"\\\\files\\data"}`,
	`v1.Smb/RemoveSmbGlobalMapping {"remotePath":"\\\\files\\data"}`,
	`v1.Smb/NewSmbGlobalMapping {"remotePath":"\\\\absent\\data","username":"csi","password":"csi-Pa55"}`,
}

// TestRig_Mounts mounts a volume, where Wine stores links: the folders are Wine's, the volume is the emulated node's.
func TestRig_Mounts(t *testing.T) {
	build(t)
	p := newPrefix(t)
	if links, err := p.StoresLinks(t.Context()); err != nil {
		t.Fatal(err)
	} else if !links {
		t.Skip("this Wine stores no links; Wine 11 does")
	}
	r := startIn(t, p, rig.Config{Preset: "default", Files: true})
	answers, err := r.Call(t.Context(), mountCalls...)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.DaemonLog())
	}
	got, want := transcript(mountCalls, answers), transcript(mountCalls, emulate(t, "default", mountCalls))
	t.Log(strings.Join(got, "\n"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the daemon under Wine answers otherwise than over the emulated node (-emulated +Wine):\n%s\n%s", diff, r.DaemonLog())
	}
	require.NoError(t, r.Stop(), "stop the daemon:")
}

// mountCalls are calls about a mounted folder, each twice.
var mountCalls = func() []string {
	const folder = `"C:\\var\\lib\\kubelet\\plugins\\mounted"`
	const where, path, isLink = `{"volumeId":$volume,"targetPath":` + folder + `}`, `{"path":` + folder + `}`, `v2alpha1.Filesystem/IsSymlink {"path":` + folder + `}`
	calls := []string{`v1.Disk/PartitionDisk {"diskNumber":8}`, `v2alpha1.Volume/ListVolumesOnDisk {"diskNumber":8}`, `v2alpha1.Volume/FormatVolume {"volumeId":$volume}`}
	for _, call := range []string{
		"v2alpha1.Volume/MountVolume " + where, isLink,
		`v2alpha1.Volume/GetVolumeIDFromTargetPath {"targetPath":` + folder + `}`,
		"v2alpha1.Filesystem/RmdirContents " + path, // refuses a mounted folder
		"v2alpha1.Volume/UnmountVolume " + where, isLink,
		"v2alpha1.Filesystem/Rmdir " + path,
	} {
		calls = append(calls, call, call)
	}
	return calls
}()

// build builds the rig, once.
func build(t *testing.T) {
	t.Helper()
	require.NoError(t, built(t.Context()))
}

var built = func() func(context.Context) error {
	var once sync.Once
	var err error
	return func(ctx context.Context) error {
		once.Do(func() { err = rig.Build(ctx) })
		return err
	}
}()

func start(t *testing.T, config rig.Config) *rig.Rig {
	t.Helper()
	return startIn(t, newPrefix(t), config)
}

func newPrefix(t *testing.T) *prefix.Prefix {
	t.Helper()
	p, err := prefix.Need(t).New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func startIn(t *testing.T, p *prefix.Prefix, config rig.Config) *rig.Rig {
	t.Helper()
	// Not the test's context, which ends before Close can end the programs.
	r, err := rig.Start(context.WithoutCancel(t.Context()), p, config)
	require.NoError(t, err)
	return r
}

// emulate makes calls to an emulated node, over Unix sockets.
func emulate(t *testing.T, preset string, calls []string) []string {
	t.Helper()
	model, err := devices.Model(preset)
	require.NoError(t, err)
	node, err := winsim.New(model)
	require.NoError(t, err)
	serve.Start(t, node)
	var caller call.Caller
	answers := make([]string, len(calls))
	for i, text := range calls {
		answers[i] = caller.Do(t.Context(), text)
	}
	return answers
}

var guid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// transcript puts calls and answers together. GUIDs, of which new partitions get random
// ones, are replaced by numbers in the order of their appearance, and what COM adds to
// errors is left out.
func transcript(calls, answers []string) []string {
	var lines []string
	for i := range calls {
		lines = append(lines, calls[i]+"\n\t"+strings.ReplaceAll(strings.TrimSpace(answers[i]), "WMI: "+wmi.Description+": ", ""))
	}
	numbers := map[string]string{}
	text := guid.ReplaceAllStringFunc(strings.Join(lines, "\x00"), func(guid string) string {
		if numbers[guid] == "" {
			numbers[guid] = fmt.Sprintf("guid-%d", len(numbers)+1)
		}
		return numbers[guid]
	})
	return strings.Split(text, "\x00")
}
