package serve_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestReadOnly: the group disk shows and changes whether a disk is read-only. Each change is made twice.
func TestReadOnly(t *testing.T) {
	node := newNode(t)
	before, err := node.DiskFingerprint(1)
	must(t, err)
	dir := run(t, node)
	client := extensionv1.NewDiskReadOnlyClient(dial(t, dir, grpcapi.Endpoint{Group: "disk", Version: "v1"}))
	if _, err := client.SetDiskReadOnly(t.Context(), &extensionv1.Disk{Number: new(uint32(1)), ReadOnly: new(true), Online: new(true)}); err != nil {
		t.Fatal(err)
	}
	if info, err := node.DiskInfo(1); err != nil || info.Offline || !info.ReadOnly {
		t.Errorf("the disk is %+v, %v", info, err)
	}
	for _, readOnly := range []bool{true, true, false, false} {
		if _, err := client.SetDiskReadOnly(t.Context(), &extensionv1.Disk{Number: new(uint32(1)), ReadOnly: &readOnly}); err != nil {
			t.Fatal(err)
		}
		got, err := client.GetDiskReadOnly(t.Context(), &extensionv1.Disk{Number: new(uint32(1))})
		info, infoErr := node.DiskInfo(1)
		if err != nil || infoErr != nil || got.GetReadOnly() != readOnly || info.ReadOnly != readOnly || info.Offline {
			t.Errorf("%v, %v, and the disk is %+v, %v; want read-only %v", got, err, info, infoErr, readOnly)
		}
	}
	if after, err := node.DiskFingerprint(1); err != nil || after != before {
		t.Errorf("the content of the disk has changed: %v", err)
	}
}

// TestDiskChange: a change is that of the published API, for the disk that is meant.
func TestDiskChange(t *testing.T) {
	node := newNode(t)
	client := extensionv1.NewDiskChangeClient(dial(t, run(t, node, "disk/v1"), grpcapi.Endpoint{Group: "disk", Version: "v1"}))
	one, yes, no := uint32(1), true, false
	own, other := &extensionv1.MustBe{SerialNumber: "WINSIM0001"}, &extensionv1.MustBe{SerialNumber: "WINSIM0002"}
	for _, c := range []struct {
		request *extensionv1.Disk
		code    codes.Code
	}{
		{&extensionv1.Disk{Number: &one, MustBe: other}, codes.Aborted},
		{&extensionv1.Disk{Number: &one, MustBe: own}, codes.OK},
		{&extensionv1.Disk{Number: &one, MustBe: &extensionv1.MustBe{}}, codes.InvalidArgument},
		{&extensionv1.Disk{Number: &one}, codes.InvalidArgument},
		{&extensionv1.Disk{MustBe: own}, codes.InvalidArgument},
		{&extensionv1.Disk{Number: &one, MustBe: own, ReadOnly: &yes}, codes.InvalidArgument},
	} {
		for range 2 {
			if _, err := client.PartitionDisk(t.Context(), c.request); status.Code(err) != c.code {
				t.Errorf("partition %v: %v, want %v", c.request, err, c.code)
			}
			online, want := no, c.code
			if c.request.ReadOnly == nil {
				c.request.Online = &online
			}
			if _, err := client.SetDiskState(t.Context(), c.request); status.Code(err) != want {
				t.Errorf("offline %v: %v, want %v", c.request, err, want)
			}
			if info, err := node.DiskInfo(1); err != nil || info.Offline != (c.code == codes.OK) {
				t.Errorf("%v: the disk is %+v, %v", c.request, info, err)
			}
			if c.request.Online = &yes; c.code == codes.OK {
				if _, err := client.SetDiskState(t.Context(), c.request); err != nil {
					t.Error(err)
				}
			}
			c.request.Online = nil
		}
	}
}

func TestReadOnly_Codes(t *testing.T) {
	model := winsim.Default()
	model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, WriteProtected: true})
	protected := uint32(len(model.Disks) - 1)
	node, err := winsim.New(model)
	must(t, err)
	dir := run(t, node, "disk/v1")
	client := extensionv1.NewDiskReadOnlyClient(dial(t, dir, grpcapi.Endpoint{Group: "disk", Version: "v1"}))
	for name, c := range map[string]struct {
		disk     uint32
		readOnly bool
		code     codes.Code
		text     string
	}{
		"system disk":     {0, true, codes.PermissionDenied, "Windows runs from it"},
		"no such disk":    {99, false, codes.NotFound, "disk 99: it does not exist"},
		"write-protected": {protected, false, codes.FailedPrecondition, "attach it for writing"},
	} {
		_, err := client.SetDiskReadOnly(t.Context(), &extensionv1.Disk{Number: &c.disk, ReadOnly: &c.readOnly})
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %s", name, err, c.code, c.text)
		}
	}
	if _, err := client.GetDiskReadOnly(t.Context(), &extensionv1.Disk{Number: new(uint32(99))}); status.Code(err) != codes.NotFound {
		t.Errorf("read the state of a missing disk: %v", err)
	}
	for _, request := range []*extensionv1.Disk{{}, {Number: new(uint32(1))}, {ReadOnly: new(true)}, {Number: new(uint32(1)), ReadOnly: new(true), Online: new(false)}, {Number: new(uint32(1)), ReadOnly: new(false), Online: new(true)}} {
		if _, err := client.SetDiskReadOnly(t.Context(), request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("set %v: %v, want InvalidArgument", request, err)
		}
	}
}
