package local

import (
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestBootVolume(t *testing.T) {
	const a, b win.VolumeID = "a", "b"
	type device struct {
		name string
		err  error
	}
	for _, c := range []struct {
		name         string
		partition    string
		partitionErr error
		volumesErr   error
		devices      map[win.VolumeID]device
		want         win.VolumeID
		wantErr      error
	}{
		{"found", `\Device\HarddiskVolume1`, nil, nil, map[win.VolumeID]device{a: {`\Device\HarddiskVolume2`, nil}, b: {`\Device\HarddiskVolume1`, nil}}, b, nil},
		{"in another case", `\device\harddiskvolume1`, nil, nil, map[win.VolumeID]device{a: {`\Device\HarddiskVolume1`, nil}}, a, nil},
		{"not recorded", "", winerr.FileNotFound, nil, nil, "", nil},
		{"without a name", `\Device\HarddiskVolume3`, nil, nil, map[win.VolumeID]device{a: {`\Device\HarddiskVolume2`, nil}, b: {`\Device\HarddiskVolume1`, nil}}, "", nil},
		{"a volume has gone", `\Device\HarddiskVolume1`, nil, nil, map[win.VolumeID]device{a: {"", winerr.FileNotFound}, b: {`\Device\HarddiskVolume2`, nil}}, "", nil},
		{"not readable", "", winerr.AccessDenied, nil, nil, "", winerr.AccessDenied},
		{"no volumes", `\Device\HarddiskVolume1`, nil, winerr.FileNotFound, nil, "", winerr.FileNotFound},
		{"a volume whose device is unknown", `\Device\HarddiskVolume1`, nil, nil, map[win.VolumeID]device{a: {"", winerr.AccessDenied}, b: {`\Device\HarddiskVolume2`, nil}}, "", winerr.AccessDenied},
		{"such a volume, but another one matches", `\Device\HarddiskVolume1`, nil, nil, map[win.VolumeID]device{a: {"", winerr.AccessDenied}, b: {`\Device\HarddiskVolume1`, nil}}, b, nil},
	} {
		got, err := bootSource{
			partition: func() (string, error) { return c.partition, c.partitionErr },
			volumes:   func() ([]win.VolumeID, error) { return []win.VolumeID{a, b}[:len(c.devices)], c.volumesErr },
			device:    func(id win.VolumeID) (string, error) { return c.devices[id].name, c.devices[id].err },
		}.volume()
		if got != c.want || !errors.Is(err, c.wantErr) {
			t.Errorf("%s: %q, %v, want %q, %v", c.name, got, err, c.want, c.wantErr)
		}
	}
}
