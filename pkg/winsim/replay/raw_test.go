package replay_test

import (
	"bytes"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// TestCompare_Raw: what drivers answered is read by our decoders, and a structure that they refuse is a
// difference.
func TestCompare_Raw(t *testing.T) {
	layout := must(newNode(t, "default").DriveLayout(t.Context(), win.PhysicalDrive(0)))
	table := must(winlayout.EncodeDriveLayout(layout))
	link := must(winlayout.EncodeReparsePoint(win.ReparsePoint{Tag: win.TagSymlink, Substitute: `\??\C:\x`, Print: `C:\x`}))
	var out bytes.Buffer
	r := record.New(t.Context(), newNode(t, "default"), &out, record.Options{})
	add := func(code winapi.ControlCode, in, answer []byte, err error) {
		r.ControlCode(uint32(code), in, answer, err)
	}
	add(winapi.DiskGetDriveLayoutEx, nil, table, nil)
	add(0x000900A8, nil, link, nil)
	add(winapi.DiskGetDriveLayoutEx, nil, nil, winerr.AccessDenied) // failed
	add(winapi.DiskGetDriveLayoutEx, nil, make([]byte, 5<<10), nil) // too long to be recorded as a whole
	add(winapi.DiskUpdateProperties, nil, nil, nil)                 // without an answer
	add(winapi.StorageQueryProperty, winlayout.EncodePropertyQuery(winlayout.DeviceProperty), []byte{1, 2, 3}, nil)
	r.Rows("MSFT_SmbGlobalMapping", []map[string]any{{"RemotePath": `\\files\data`, "Status": int64(0)}}, nil)
	recording := must(record.Read(bytes.NewReader(out.Bytes())))
	if len(recording.Raw) != 7 || recording.Raw[6].Rows[0]["RemotePath"] != `\\files\data` {
		t.Errorf("%+v", recording.Raw)
	}
	report := must(replay.Compare(t.Context(), &out))
	if report.Raw != 3 || len(report.Differences) != 1 || report.Differences[0].Kind != replay.Bytes || report.Differences[0].Recorded != "010203" {
		t.Errorf("%d answers were decoded, differences %v", report.Raw, report.Differences)
	}
}
