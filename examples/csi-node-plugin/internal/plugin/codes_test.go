package plugin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestCodes shows that what cannot be done is refused in both modes with the code of the CSI
// specification, and with words that help.
func TestCodes(t *testing.T) {
	const handle = "disk/WINSIM0001"
	block := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	inMode := func(fsType string, mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
		capability := mounted(fsType)
		capability.AccessMode.Mode = mode
		return capability
	}
	readOnly := mounted("ext4")
	readOnly.GetMount().MountFlags = []string{"ro"}
	stage := func(handle, path string, capability *csi.VolumeCapability, secrets ...string) func(context.Context, *driver) error {
		return func(ctx context.Context, d *driver) error {
			request := &csi.NodeStageVolumeRequest{VolumeId: handle, StagingTargetPath: path, VolumeCapability: capability}
			if len(secrets) == 2 {
				request.Secrets = map[string]string{"username": secrets[0], "password": secrets[1]}
			}
			_, err := d.NodeStageVolume(ctx, request)
			return err
		}
	}
	publish := func(change func(*csi.NodePublishVolumeRequest)) func(context.Context, *driver) error {
		return func(ctx context.Context, d *driver) error {
			request := &csi.NodePublishVolumeRequest{
				VolumeId: handle, StagingTargetPath: kubelet + `\plugins\empty`, TargetPath: kubelet + `\pods\pod`, VolumeCapability: mounted("ntfs"),
			}
			change(request)
			_, err := d.NodePublishVolume(ctx, request)
			return err
		}
	}
	const staging = kubelet + `\plugins\staging`
	for _, test := range []struct {
		name string
		call func(context.Context, *driver) error
		code codes.Code
		text string
	}{
		{"a raw block volume", stage(handle, staging, block), codes.InvalidArgument, "raw block"},
		{"another file system", stage(handle, staging, mounted("ufs")), codes.InvalidArgument, "ntfs"},
		{"a read-only share", stage("smb/files/data", staging, readOnly), codes.InvalidArgument, "read-only"},
		{"a read-only blank disk", stage(handle, staging, readOnly), codes.FailedPrecondition, "stage it once"},
		{"a disk on several nodes", stage(handle, staging, inMode("ntfs", csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)), codes.InvalidArgument, "use ReadWriteOnce"},
		{"a disk for one pod", stage(handle, staging, inMode("ntfs", csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)), codes.InvalidArgument, "SINGLE_NODE_SINGLE_WRITER"},
		{"a share for one pod", stage("smb/files/data", staging, inMode("", csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)), codes.InvalidArgument, "ReadWriteOnce"},
		{"a share for readers", stage("smb/files/data", staging, inMode("", csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)), codes.InvalidArgument, "ReadWriteMany"},
		{"a share without an access mode", stage("smb/files/data", staging, inMode("", csi.VolumeCapability_AccessMode_UNKNOWN)), codes.InvalidArgument, "UNKNOWN"},
		{"a disk that is not attached", stage("disk/NONE", staging, mounted("ntfs")), codes.NotFound, "NONE"},
		{"an unknown kind of volume", stage("tape/1", staging, mounted("ntfs")), codes.NotFound, "tape/1"},
		{"the disk of the system", stage("disk/SYSTEM", staging, mounted("ntfs")), codes.NotFound, "Windows runs from"},
		{"a relative staging path", stage(handle, `plugins\staging`, mounted("ntfs")), codes.InvalidArgument, "absolute"},
		{"a path outside the kubelet's", stage(handle, `C:\Windows\staging`, mounted("ntfs")), codes.PermissionDenied, `C:\Windows`},
		{"a share without a name", stage("smb/files", staging, mounted("")), codes.NotFound, "SHARE"},
		{"a volume that is not staged", publish(func(*csi.NodePublishVolumeRequest) {}), codes.FailedPrecondition, "stage the volume first"},
		{"no staging path", publish(func(r *csi.NodePublishVolumeRequest) { r.StagingTargetPath = "" }), codes.FailedPrecondition, "stage the volume first"},
		{"a read-only volume", publish(func(r *csi.NodePublishVolumeRequest) { r.Readonly = true }), codes.InvalidArgument, "readOnly"},
		{"a share that is not staged", publish(func(r *csi.NodePublishVolumeRequest) {
			r.VolumeId, r.VolumeCapability = "smb/files/data", mounted("")
		}), codes.FailedPrecondition, "stage the volume first"},
		{"more than the disk has", func(ctx context.Context, d *driver) error {
			if err := stage(handle, staging, mounted("ntfs"))(ctx, d); err != nil {
				return err
			}
			_, err := d.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
				VolumeId: handle, VolumePath: staging, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 40},
			})
			return err
		}, codes.OutOfRange, "grow the disk first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBothModes(t, func(d *driver) {
				t := d.t
				for _, dir := range []string{`\plugins\staging`, `\plugins\empty`} {
					must(t, d.node.Mkdir(kubelet+dir))
				}
				err := test.call(t.Context(), d)
				if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.text) {
					t.Errorf("got %v, want %v with %q", err, test.code, test.text)
				}
				for _, foreign := range []string{"rpc error", "Rmdir", "Mkdir"} {
					if strings.Contains(status.Convert(err).Message(), foreign) {
						t.Errorf("the message has %q in it, which says nothing to who reads a pod's events: %v", foreign, err)
					}
				}
			})
		})
	}
}

// TestCodes_Required shows that a required field is missed before the volume is looked for:
// InvalidArgument, not NotFound.
func TestCodes_Required(t *testing.T) {
	const path = kubelet + `\plugins\empty`
	inBothModes(t, func(d *driver) {
		ctx := d.t.Context()
		for _, handle := range []string{"disk/WINSIM0001", "no-handle-of-ours"} {
			for name, call := range map[string]func() error{
				"NodeStageVolume, path": func() error {
					_, err := d.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: handle, VolumeCapability: mounted("")})
					return err
				},
				"NodeStageVolume, capability": func() error {
					_, err := d.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: handle, StagingTargetPath: path})
					return err
				},
				"NodeUnstageVolume, path": func() error {
					_, err := d.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: handle})
					return err
				},
				"NodePublishVolume, path": func() error {
					_, err := d.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: handle, StagingTargetPath: path, VolumeCapability: mounted("")})
					return err
				},
				"NodePublishVolume, capability": func() error {
					_, err := d.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: handle, StagingTargetPath: path, TargetPath: path})
					return err
				},
				"NodeUnpublishVolume, path": func() error {
					_, err := d.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: handle})
					return err
				},
				"NodeExpandVolume, path": func() error {
					_, err := d.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: handle})
					return err
				},
				"NodeGetVolumeStats, path": func() error {
					_, err := d.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: handle})
					return err
				},
			} {
				if err := call(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "is missing") {
					d.t.Errorf("%s of %s: %v, want InvalidArgument", name, handle, err)
				}
			}
		}
	})
}

// TestAborted shows that a second operation on a volume is refused while the first goes on,
// and that other volumes do not wait.
func TestAborted(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		formatting := make(chan struct{})
		fault, err := d.node.Inject(winsim.Fault{
			Call: "Format", Times: 1, Delay: time.Hour, Do: func(*winsim.Node) { close(formatting) },
		})
		must(t, err)
		defer fault.Remove()
		folders := map[string]string{}
		for _, disk := range []string{"WINSIM0001", "WINSIM0002"} {
			folders[disk], _ = paths(t, d.node, disk)
		}
		// Who waits for the first operation has no end before that; the test has.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		stage := func(disk string) error {
			_, err := d.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
				VolumeId: "disk/" + disk, StagingTargetPath: folders[disk], VolumeCapability: mounted("ntfs"),
			})
			return err
		}
		first := make(chan error, 1)
		go func() { first <- stage("WINSIM0001") }()
		select {
		case <-formatting:
		case err := <-first:
			t.Fatalf("the first operation was not held up: %v", err)
		}
		if err := stage("WINSIM0001"); status.Code(err) != codes.Aborted {
			t.Errorf("the second operation on the volume: %v, want Aborted", err)
		}
		if err := stage("WINSIM0002"); err != nil {
			t.Errorf("an operation on another volume: %v", err)
		}
		fault.Remove()
		if err := <-first; err != nil {
			t.Errorf("the first operation: %v", err)
		}
	})
}

// TestSecrets shows that neither the log nor an error has a password in it.
func TestSecrets(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		staging, _ := paths(t, d.node, "web")
		for _, password := range []string{"wrong-Pa55", "csi-Pa55"} {
			_, err := d.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
				VolumeId: "smb/files/data", StagingTargetPath: staging, VolumeCapability: mounted(""),
				Secrets: map[string]string{"username": "csi", "password": password},
			})
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("the password is in the error: %v", err)
			}
		}
		text := d.log.String()
		if strings.Contains(text, "Pa55") {
			t.Errorf("a password is in the log:\n%s", text)
		}
		for _, want := range []string{"volume=smb/files/data", "code=PermissionDenied", "code=OK"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log lacks %s:\n%s", want, text)
			}
		}
	})
}

// TestSecrets_Domain shows how the server sees a user of a domain.
func TestSecrets_Domain(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		staging, _ := paths(t, d.node, "web")
		_, err := d.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
			VolumeId: "smb/files/data", StagingTargetPath: staging, VolumeCapability: mounted(""),
			Secrets: map[string]string{"domain": "CORP", "username": "jane", "password": "p:a$s 'w\"ord"},
		})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("a user whom the server does not know: %v, want PermissionDenied", err)
		}
		logons := d.node.SMBLogons("files")
		if len(logons) != 1 || logons[0].User != `CORP\jane` || logons[0].Password != "p:a$s 'w\"ord" || !logons[0].Encrypted {
			t.Errorf("the server got %+v", logons)
		}
	})
}

// TestProbe shows that a plugin says so if its node cannot be worked on.
func TestProbe(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		if response, err := d.Probe(t.Context(), &csi.ProbeRequest{}); err != nil || !response.GetReady().GetValue() {
			t.Errorf("a healthy node: %v, %v", response, err)
		}
		must(t, d.node.RemoveAll(kubelet))
		if _, err := d.Probe(t.Context(), &csi.ProbeRequest{}); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("a node without the kubelet's directory: %v, want FailedPrecondition", err)
		}
	})
}
