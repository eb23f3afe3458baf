package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestIsVolumeFormatted_OnlyOneCodeMeansNo lets the question fail in every other way.
func TestIsVolumeFormatted_OnlyOneCodeMeansNo(t *testing.T) {
	for _, c := range []struct {
		code winerr.Code
		kind winerr.Kind
	}{
		{winerr.FileNotFound, winerr.NotFound},
		{winerr.PathNotFound, winerr.NotFound},
		{winerr.AccessDenied, winerr.Denied},
		{winerr.WriteProtect, winerr.InUse},
		{winerr.NotReady, winerr.Unavailable},
		{winerr.CRC, winerr.Internal},
		{winerr.NoSuchDevice, winerr.NotFound},
		{winerr.IODevice, winerr.Internal},
		{winerr.DeviceNotConnected, winerr.NotFound},
		{winerr.FileCorrupt, winerr.Internal},
		{winerr.DiskCorrupt, winerr.Internal},
		{winerr.FVELocked, winerr.InUse},
		{31, winerr.Internal}, // not known to us
	} {
		t.Run(c.code.Error(), func(t *testing.T) {
			node := nodeWith(t, unformatted())
			inject(t, node, winsim.Fault{Call: "FileSystem", Error: uint32(c.code)})
			_, err := volumeapi.NewOn(node).IsVolumeFormatted(id)
			wantKind(t, "IsVolumeFormatted", err, c.kind, id)
		})
	}
}

func TestIsVolumeFormatted_PassingTrouble(t *testing.T) {
	for name, fault := range map[string]winsim.Fault{
		"unrecognised once": {Call: "FileSystem", Times: 1, Error: uint32(winerr.UnrecognizedVolume)},
		"not ready once":    {Call: "FileSystem", Times: 1, Error: uint32(winerr.NotReady)},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(t, formatted())
			inject(t, node, fault)
			wantFormatted(t, volumeapi.NewOn(node), id, true)
		})
	}
	t.Run("while the volume arrives", func(t *testing.T) {
		model := modelWith(gpt(winsim.GiB, formatted()))
		model.Storage.ArrivalTrouble = 80 * time.Millisecond
		wantFormatted(t, volumeapi.NewOn(newNode(t, model)), id, true)
	})
}

// TestIsVolumeFormatted_Automount shows that an offline volume is brought online.
func TestIsVolumeFormatted_Automount(t *testing.T) {
	model := modelWith()
	model.Storage.Automount = winsim.AutomountOffline
	model.Storage.VolumeArrival = 0
	node := newNode(t, model)
	_, err := node.AttachDisk(gpt(winsim.GiB, formatted()))
	must(t, err)
	wantFormatted(t, volumeapi.NewOn(node), id, true)
	wantCalls(t, node, "OnlineVolume", 1)
}

// namesRaw is a machine that has a name for volumes without a file system.
type namesRaw struct {
	*winsim.Node
	name string
}

func (m namesRaw) FileSystem(context.Context, win.VolumeID) (win.FileSystemInfo, error) {
	return win.FileSystemInfo{Name: m.name}, nil
}

func TestIsVolumeFormatted_ByName(t *testing.T) {
	wantFormatted(t, volumeapi.NewOn(namesRaw{nodeWith(t, unformatted()), "RAW"}), id, false)
	_, err := volumeapi.NewOn(namesRaw{nodeWith(t, unformatted()), ""}).IsVolumeFormatted(id)
	wantKind(t, "no name at all", err, winerr.Internal, id)
}

// foreign are the traces of what Windows does not recognise.
var foreign = map[string]winsim.Bytes{
	"damaged NTFS":   {Offset: 3, Text: "NTFS    "},
	"BitLocker":      {Offset: 3, Text: "-FVE-FS-"},
	"ReFS":           {Offset: 3, Hex: "5265465300000000"},
	"ext4":           {Offset: 1080, Hex: "53ef"},
	"XFS":            {Offset: 0, Text: "XFSB"},
	"LUKS":           {Offset: 0, Hex: "4c554b53babe"},
	"LVM":            {Offset: 512, Text: "LABELONE"},
	"Linux swap":     {Offset: 4086, Text: "SWAPSPACE2"},
	"ISO 9660":       {Offset: 32769, Text: "CD001"},
	"Btrfs":          {Offset: 65600, Text: "_BHRfS_M"},
	"any other boot": {Offset: 510, Hex: "55aa"},
	"a torn sector":  {Offset: 0, Text: "half a boot sector"},
	"raw content":    {Offset: 200 << 10, Text: "of a database"},
	"lost NTFS":      {Offset: -509, Text: "NTFS    "}, // its second boot sector
	"Linux RAID":     {Offset: -8192, Hex: "fc4e2ba9"},
}

// foreignDisk is a disk with such traces on its only volume.
func foreignDisk(traces winsim.Bytes) winsim.Disk {
	disk := gpt(winsim.GiB, unformatted())
	disk.Partitions[1].Bytes = []winsim.Bytes{traces}
	return disk
}

func TestIsVolumeFormatted_UnrecognisedButNotEmpty(t *testing.T) {
	for name, traces := range foreign {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, modelWith(foreignDisk(traces)))
			before := fingerprint(t, node)
			_, err := volumeapi.NewOn(node).IsVolumeFormatted(id)
			wantKind(t, "IsVolumeFormatted", err, winerr.InUse, "unrecognised but not empty")
			err = volumeapi.NewOn(node).FormatVolume(id)
			for _, text := range []string{"unrecognised but not empty", "chkdsk", "snapshot", "clean all"} {
				wantKind(t, "FormatVolume", err, winerr.InUse, text)
			}
			if fingerprint(t, node) != before {
				t.Error("the content of a disk changed")
			}
		})
	}
}

// TestIsVolumeFormatted_FormattedMeanwhile lets a format end, whose caller may have left, between the two looks at
// the volume.
func TestIsVolumeFormatted_FormattedMeanwhile(t *testing.T) {
	node := nodeWith(t, unformatted())
	inject(t, node, winsim.Fault{Call: "ReadDevice", Times: 1, Do: func(n *winsim.Node) {
		must(t, n.Format(t.Context(), win.VolumeID(id), win.FormatOptions{}))
	}})
	wantFormatted(t, volumeapi.NewOn(node), id, true)
}

func TestIsVolumeFormatted_Unreadable(t *testing.T) {
	node := nodeWith(t, unformatted())
	inject(t, node, winsim.Fault{Call: "ReadDevice", Error: uint32(winerr.CRC)})
	_, err := volumeapi.NewOn(node).IsVolumeFormatted(id)
	wantKind(t, "IsVolumeFormatted", err, winerr.Internal, id)
}
