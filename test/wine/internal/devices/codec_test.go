package devices

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

var gpt = win.DriveLayout{
	Style: win.StyleGPT, DiskID: win.NewGUID(), UsableOffset: 17408, UsableLength: 1 << 30, MaxPartitions: 128,
	Partitions: []win.Partition{{Offset: 1 << 20, Length: 1 << 29, Number: 1, Type: win.PartitionBasicData, ID: win.NewGUID(), Name: "data"}},
}

// TestDecode_Strict shows that mistakes would be seen.
func TestDecode_Strict(t *testing.T) {
	table, err := winlayout.EncodeDriveLayout(gpt)
	require.NoError(t, err)
	table[48+28] = 0 // RewritePartition
	attributes := winlayout.EncodeDiskAttributes(win.DiskAttributes{}, win.DiskAttributes{Offline: true})
	version := append([]byte{16}, attributes[1:]...)
	for name, err := range map[string]error{
		"query that is too short":         second(decodePropertyQuery(make([]byte, 11))),
		"partition not to be written":     second(decodeSetDriveLayout(table)),
		"attributes with a wrong version": third(decodeSetDiskAttributes(version)),
		"attributes that are too long":    third(decodeSetDiskAttributes(append(attributes, 0))),
		"disk without a style":            second(decodeCreateDisk(make([]byte, 24))),
		"disk that is too short":          second(decodeCreateDisk(make([]byte, 23))),
		"growth without padding":          third(decodeGrowPartition(make([]byte, 12))),
		"extension in 32 bits":            second(decodeExtendVolume(make([]byte, 4))),
	} {
		if code := winerr.CodeOf(err); code != winerr.InvalidParameter && code != winerr.BadLength {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }
