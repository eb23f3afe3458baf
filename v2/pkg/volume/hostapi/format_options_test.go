package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const unfinishedLabel = "csi-proxy unfinished format"

var chosen = volumeapi.FormatOptions{AllocationUnitSize: 64 << 10, Label: "Größe 1", RootAccess: volumeapi.UsersModify}

func formatWith(host volumeapi.HostAPI, options volumeapi.FormatOptions) error {
	return host.(volumeapi.Extended).FormatVolumeWithOptions(id, options)
}

// volumeInfo describes the data volume.
func volumeInfo(t *testing.T, node *winsim.Node) winsim.Volume {
	t.Helper()
	info, err := node.DiskInfo(firstDisk)
	must(t, err)
	for _, p := range info.Partitions {
		if p.Volume != nil && p.Volume.ID == id {
			return *p.Volume
		}
	}
	t.Fatal("the volume is gone")
	return winsim.Volume{}
}

// wantChosen checks that the volume is as chosen says, and that a pod can use it.
func wantChosen(t *testing.T, node *winsim.Node, host volumeapi.HostAPI) {
	t.Helper()
	if info := volumeInfo(t, node); info.Label != chosen.Label || info.ClusterSize != 64*winsim.KiB {
		t.Errorf("the volume has label %q and clusters of %v", info.Label, info.ClusterSize)
	}
	wantFormatted(t, host, id, true)
	must(t, host.MountVolume(id, pods+`\web`))
	must(t, node.WriteFileAsUser(pods+`\web\file`, "data"))
}

func TestFormatVolume_Options(t *testing.T) {
	node := nodeWith(t, unformatted())
	host := volumeapi.NewOn(node)
	for range 2 {
		must(t, formatWith(host, chosen))
	}
	wantCalls(t, node, "Format", 1)
	wantCalls(t, node, "SetRootSecurity", 1)
	wantCalls(t, node, "RootEntries", 0)
	wantChosen(t, node, host)
}

// TestFormatVolume_OptionsLegacy: the older way takes the same options.
func TestFormatVolume_OptionsLegacy(t *testing.T) {
	node := nodeWith(t, unformatted())
	inject(t, node, winsim.Fault{Call: "Format", Error: uint32(winerr.StorageNotSupported)})
	host := volumeapi.NewOn(node)
	must(t, formatWith(host, chosen))
	wantCalls(t, node, "FormatLegacy", 1)
	wantChosen(t, node, host)
}

// TestFormatVolume_RootAccess: without an option, a pod that runs as ContainerUser cannot write to
// the root (csi-proxy#382).
func TestFormatVolume_RootAccess(t *testing.T) {
	for access, writes := range map[string]bool{
		"":                                   false,
		volumeapi.UsersModify:                true,
		"D:(A;OICI;FA;;;SY)(A;OICI;GA;;;BA)": false,
		"D:(A;OICI;FA;;;SY)(A;OICI;0x1f01ff;;;S-1-5-32-544)(A;;FW;;;BU)": true,
		"D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;0x1301bf;;;BU)":  false,
	} {
		t.Run(access, func(t *testing.T) {
			node := nodeWith(t, unformatted())
			host := volumeapi.NewOn(node)
			must(t, formatWith(host, volumeapi.FormatOptions{RootAccess: access}))
			must(t, host.MountVolume(id, pods+`\web`))
			if err := node.WriteFileAsUser(pods+`\web\file`, "x"); (err == nil) != writes || (err != nil && winerr.CodeOf(err) != winerr.AccessDenied) {
				t.Errorf("a pod's write: %v", err)
			}
			must(t, node.Mkdir(pods+`\web\dir`))
			must(t, node.WriteFileAsUser(pods+`\web\dir\file`, "x"))
			if label := volumeInfo(t, node).Label; label != "" {
				t.Errorf("the label is %q", label)
			}
		})
	}
}

func TestFormatVolume_BadOptions(t *testing.T) {
	const full = "D:(A;OICI;FA;;;SY)"
	for says, options := range map[string]volumeapi.FormatOptions{
		"513 is not a power of two":     {AllocationUnitSize: 513},
		"256 is not a power of two":     {AllocationUnitSize: 256},
		"4194304 is not a power of two": {AllocationUnitSize: 4 << 20},
		"8192 is not 4096 or 65536":     {FileSystem: "ReFS", AllocationUnitSize: 8192},
		"neither NTFS nor ReFS":         {FileSystem: "ext4"},
		"more than 32 characters":       {Label: strings.Repeat("ä", 33)},
		`"a:b" has an unprintable`:      {Label: `a:b`},
		`\n`:                            {Label: "a\nb"},
		`\u0085`:                        {Label: "a\u0085b"}, // next line
		`\u202e`:                        {Label: "a\u202eb"}, // right to left
		"not UTF-8":                     {Label: "\xff"},
		"choose another":                {Label: strings.ToUpper(unfinishedLabel)},
		"neither users-modify nor":      {RootAccess: "everyone"},
		"does not give BA full access":  {RootAccess: full},
		"use A, which allows":           {RootAccess: full + "(D;;GA;;;WD)"},
		"add (A;OICI;FA;;;SY)":          {RootAccess: "D:(A;OICI;FA;;;BA)(A;OICIIO;FA;;;SY)"},
	} {
		node := nodeWith(t, unformatted())
		before := fingerprint(t, node)
		wantKind(t, fmt.Sprintf("%+v", options), formatWith(volumeapi.NewOn(node), options), winerr.Invalid, says)
		if err := options.Check(); !errors.Is(err, winerr.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("Check of %+v: %v", options, err)
		}
		if fingerprint(t, node) != before {
			t.Errorf("%+v: the volume changed", options)
		}
	}
	for size := uint32(512); size <= 2<<20; size *= 2 {
		node := nodeWith(t, unformatted())
		must(t, formatWith(volumeapi.NewOn(node), volumeapi.FormatOptions{AllocationUnitSize: size, Label: strings.Repeat("ä", 32)}))
		if got := volumeInfo(t, node).ClusterSize; got != winsim.Size(size) {
			t.Errorf("the clusters have %v, want %d", got, size)
		}
	}
	// What only the disk reports: sectors of 4096 bytes have no smaller clusters.
	disk := gpt(winsim.GiB, unformatted())
	disk.SectorSize = 4096
	node := newNode(t, modelWith(disk))
	wantKind(t, "clusters below a sector", formatWith(volumeapi.NewOn(node), volumeapi.FormatOptions{AllocationUnitSize: 512}), winerr.Invalid, "cluster size")
}

// TestFormatVolume_OptionsNeverChange: a volume that has a file system keeps everything.
func TestFormatVolume_OptionsNeverChange(t *testing.T) {
	for name, v := range map[string]winsim.Volume{
		"with files": formatted(), "empty": {ID: id}, "ReFS": {ID: id, FileSystem: winsim.ReFS}, "FAT32": {ID: id, FileSystem: winsim.FAT32},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(t, v)
			before := fingerprint(t, node)
			must(t, formatWith(volumeapi.NewOn(node), chosen))
			if fingerprint(t, node) != before {
				t.Error("the volume changed")
			}
		})
	}
}

// TestFormatVolume_Unfinished: volumes with the label of an interrupted format.
func TestFormatVolume_Unfinished(t *testing.T) {
	for name, c := range map[string]struct {
		file     string // in the root
		finishes bool
	}{
		"new":                      {finishes: true},
		"what Windows adds":        {file: `System Volume Information\WPSettings.dat`, finishes: true},
		"and its recycle bin":      {file: `$Recycle.Bin\desktop.ini`, finishes: true},
		"in use":                   {file: "precious"},
		"in use, with a directory": {file: `data\precious`},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(t, unformatted())
			host := volumeapi.NewOn(node)
			must(t, node.Format(t.Context(), win.VolumeID(id), win.FormatOptions{ClusterSize: 64 << 10, Label: unfinishedLabel}))
			if c.file != "" {
				must(t, node.WriteFile(id+c.file, "data"))
			}
			before := fingerprint(t, node)
			wantFormatted(t, host, id, !c.finishes)
			if c.finishes {
				wantKind(t, "MountVolume", host.MountVolume(id, pods+`\web`), winerr.InUse, "FormatVolume completes it")
			}
			if fingerprint(t, node) != before {
				t.Error("a question changed the volume")
			}
			must(t, formatWith(host, chosen))
			wantCalls(t, node, "Format", 1) // ours
			if c.finishes {
				wantChosen(t, node, host)
			} else {
				if fingerprint(t, node) != before {
					t.Error("a volume with files changed")
				}
				must(t, host.MountVolume(id, pods+`\web`))
			}
			if c.file != "" {
				if text, err := node.ReadFile(id + c.file); err != nil || text != "data" {
					t.Errorf("the file has %q, %v", text, err)
				}
			}
		})
	}
}

// TestFormatVolume_UnfinishedUnreadable: a failure is not the answer "not formatted".
func TestFormatVolume_UnfinishedUnreadable(t *testing.T) {
	node := nodeWith(t, unformatted())
	must(t, node.Format(t.Context(), win.VolumeID(id), win.FormatOptions{Label: unfinishedLabel}))
	inject(t, node, winsim.Fault{Call: "RootEntries", Error: uint32(winerr.IODevice)})
	host := volumeapi.NewOn(node)
	before := fingerprint(t, node)
	_, err := host.IsVolumeFormatted(id)
	wantKind(t, "IsVolumeFormatted", err, winerr.Internal, id)
	wantKind(t, "FormatVolume", formatWith(host, chosen), winerr.Internal, id)
	wantKind(t, "MountVolume", host.MountVolume(id, pods+`\web`), winerr.Internal, id)
	if fingerprint(t, node) != before {
		t.Error("the volume changed")
	}
}

// TestFormatVolume_UnfinishedWithoutOptions: a daemon without flags completes what one with flags
// began, as it formats itself.
func TestFormatVolume_UnfinishedWithoutOptions(t *testing.T) {
	node := nodeWith(t, unformatted())
	must(t, node.Format(t.Context(), win.VolumeID(id), win.FormatOptions{Label: unfinishedLabel}))
	host := volumeapi.NewOn(node)
	must(t, host.FormatVolume(id))
	wantFormatted(t, host, id, true)
	wantCalls(t, node, "SetRootSecurity", 0)
	if label := volumeInfo(t, node).Label; label != "" {
		t.Errorf("the label is %q", label)
	}
}

// TestFormatVolume_OtherOptionsWait: callers with other options do not share a run.
func TestFormatVolume_OtherOptionsWait(t *testing.T) {
	node := nodeWith(t, unformatted())
	host := volumeapi.NewOn(node)
	results := make(chan error)
	for _, label := range []string{"one", "two", ""} {
		go func() {
			results <- formatWith(bind(context.WithoutCancel(t.Context()), host), volumeapi.FormatOptions{Label: label})
		}()
	}
	for range 3 {
		must(t, <-results)
	}
	wantCalls(t, node, "Format", 1)
}
