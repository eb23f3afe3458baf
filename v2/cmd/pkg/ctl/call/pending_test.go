package call

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
)

// TestDescribe: a call names its object and its step, and no secret.
func TestDescribe(t *testing.T) {
	portal := &iscsiv1alpha2.TargetPortal{TargetAddress: "10.0.0.10", TargetPort: 3260}
	for _, c := range []struct {
		method  string
		request proto.Message
		want    string
	}{
		{"GetDiskStats", &diskv1.GetDiskStatsRequest{DiskNumber: 2}, "disk 2 (GetDiskStats)"},
		{"PartitionDisk", &diskv1.PartitionDiskRequest{}, "disk 0 (PartitionDisk)"},
		{"ListDiskIDs", &diskv1.ListDiskIDsRequest{}, "the server (ListDiskIDs)"},
		{"FormatVolume", &volumev2alpha1.FormatVolumeRequest{VolumeId: "v\x1b[2J"}, "volume v<U+001B>[2J (FormatVolume)"},
		{"GetVolumeIDFromTargetPath", &volumev2alpha1.GetVolumeIDFromTargetPathRequest{TargetPath: `C:\x`}, `C:\x (GetVolumeIDFromTargetPath)`},
		{"Rmdir", &filesystemv2alpha1.RmdirRequest{Path: `C:\x`}, `C:\x (Rmdir)`},
		{"NewSmbGlobalMapping", &smbv1.NewSmbGlobalMappingRequest{RemotePath: `\\s\d`, Password: "geheim", Username: "u"}, `share \\s\d (NewSmbGlobalMapping)`},
		{"ConnectTarget", &iscsiv1alpha2.ConnectTargetRequest{TargetPortal: portal, Iqn: "iqn.x", ChapSecret: "geheim"}, "target iqn.x (ConnectTarget)"},
		{"AddTargetPortal", &iscsiv1alpha2.AddTargetPortalRequest{TargetPortal: portal}, "portal 10.0.0.10 (AddTargetPortal)"},
		{"GetBIOSSerialNumber", &systemv1alpha1.GetBIOSSerialNumberRequest{}, "the server (GetBIOSSerialNumber)"},
		{"StartService", &systemv1alpha1.StartServiceRequest{Name: "MSiSCSI"}, "service MSiSCSI (StartService)"},
	} {
		if got := describe("/v1.Group/"+c.method, c.request); got != c.want {
			t.Errorf("%s: got %q, want %q", c.method, got, c.want)
		}
	}
}

// TestPending: the oldest call counts, and a call that has ended does not.
func TestPending(t *testing.T) {
	at := time.Unix(100, 0)
	client := New(endpoint.Node{}, func() time.Time { return at })
	if found, ok := client.Pending(); ok {
		t.Errorf("got %+v", found)
	}
	endFirst := client.begin("first")
	at = at.Add(time.Second)
	endSecond := client.begin("second")
	if found, _ := client.Pending(); found.What != "first" || found.Since.Unix() != 100 {
		t.Errorf("got %+v", found)
	}
	endFirst()
	if found, _ := client.Pending(); found.What != "second" {
		t.Errorf("got %+v", found)
	}
	endSecond()
	if found, ok := client.Pending(); ok {
		t.Errorf("got %+v", found)
	}
}

// TestNameLate: a hung disk is named, and what the server says of it stays.
func TestNameLate(t *testing.T) {
	request := &diskv1.GetDiskStatsRequest{DiskNumber: 5}
	for text, want := range map[string]string{
		context.DeadlineExceeded.Error():                "GetDiskStats: disk 5 did not answer in time",
		"get size of disk 5: context deadline exceeded": "GetDiskStats: disk 5 did not answer in time",
		lateText:                   "GetDiskStats: disk 5 did not answer in time",
		"get size of disk 5: late": "get size of disk 5: late",
	} {
		got := status.Convert(nameLate(status.Error(codes.DeadlineExceeded, text), "/v1.Disk/GetDiskStats", request))
		if got.Message() != want || got.Code() != codes.DeadlineExceeded {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	other := status.Error(codes.NotFound, lateText)
	if got := nameLate(other, "/v1.Disk/GetDiskStats", request); !errors.Is(got, other) {
		t.Errorf("got %v", got)
	}
}
