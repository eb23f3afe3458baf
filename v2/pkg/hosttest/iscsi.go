package hosttest

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// ISCSINode is a node under test and the servers it can reach. Leave fields empty that the node
// does not have; the suite skips the cases that need them.
type ISCSINode struct {
	// API is the implementation under test. Its errors must match those of io/fs.
	API iscsi.Interface

	// Portal offers the targets below and is not registered. Dead is a portal that does not
	// answer.
	Portal, Dead *iscsi.TargetPortal
	// Other offers only OtherTarget.
	Other       *iscsi.TargetPortal
	OtherTarget string
	// Open is a target without authentication, with OpenDisks empty disks.
	Open      string
	OpenDisks int
	// Guarded is a target that requires CHAP with these credentials and authenticates itself
	// with MutualSecret. All secrets have a valid length.
	Guarded, User, Secret, MutualSecret string
	// Missing is the name of an unknown target.
	Missing string

	// SetService sets the state of the service MSiSCSI: "running" or "stopped".
	SetService func(state string) error
	// Hold keeps the disks of a target open, as another program does. Meanwhile a call must
	// fail within the time of a test.
	Hold func(target string) (release func(), err error)

	// Disks and Volumes are the other groups of the node, Root is an existing directory on NTFS
	// in which the suite may create files, and WriteFile and ReadFile access its files.
	Disks     disk.Interface
	Volumes   volume.Interface
	Root      string
	WriteFile func(path, content string) error
	ReadFile  func(path string) (string, error)

	// Lacks names methods that this version of the API does not have.
	Lacks []string
}

// Errors that API must match where the standard library has no such error.
var (
	// ErrUnavailable means that a server cannot be reached.
	ErrUnavailable error = winerr.Unavailable
	// ErrBusy means that another program uses the object; a retry may succeed.
	ErrBusy error = winerr.Busy
)

// ISCSI runs the cases of the iSCSI group. newNode is called once per case.
func ISCSI(t *testing.T, newNode func(t *testing.T) ISCSINode) {
	t.Helper()
	runCases(t, iscsiCases, func(t *testing.T) (*iscsiNode, []string) {
		t.Helper()
		n := &iscsiNode{ISCSINode: newNode(t), runner: runner{t}}
		return n, n.Lacks
	})
}

// iscsiNode adds short names for the calls.
type iscsiNode struct {
	ISCSINode
	runner
}

func (n *iscsiNode) add(portal *iscsi.TargetPortal) error {
	return errOf(n.API.AddTargetPortal(n.ctx(), &iscsi.AddTargetPortalRequest{TargetPortal: portal}))
}

func (n *iscsiNode) remove(portal *iscsi.TargetPortal) error {
	return errOf(n.API.RemoveTargetPortal(n.ctx(), &iscsi.RemoveTargetPortalRequest{TargetPortal: portal}))
}

func (n *iscsiNode) discover(portal *iscsi.TargetPortal) ([]string, error) {
	response, err := n.API.DiscoverTargetPortal(n.ctx(), &iscsi.DiscoverTargetPortalRequest{TargetPortal: portal})
	if err != nil {
		return nil, err
	}
	return response.IQNs, nil
}

func (n *iscsiNode) portals() []iscsi.TargetPortal {
	n.t.Helper()
	response, err := n.API.ListTargetPortals(n.ctx(), &iscsi.ListTargetPortalsRequest{})
	n.must(err)
	var portals []iscsi.TargetPortal
	for _, portal := range response.TargetPortals {
		portals = append(portals, *portal)
	}
	return portals
}

func (n *iscsiNode) connect(target string) error {
	return errOf(n.API.ConnectTarget(n.ctx(), &iscsi.ConnectTargetRequest{TargetPortal: n.Portal, IQN: target}))
}

func (n *iscsiNode) connectAs(auth iscsi.AuthenticationType, user, secret string) error {
	return errOf(n.API.ConnectTarget(n.ctx(), &iscsi.ConnectTargetRequest{
		TargetPortal: n.Portal, IQN: n.Guarded, AuthType: auth, ChapUsername: user, ChapSecret: secret,
	}))
}

func (n *iscsiNode) disconnect(target string) error {
	return errOf(n.API.DisconnectTarget(n.ctx(), &iscsi.DisconnectTargetRequest{TargetPortal: n.Portal, IQN: target}))
}

func (n *iscsiNode) disks(target string) ([]string, error) {
	response, err := n.API.GetTargetDisks(n.ctx(), &iscsi.GetTargetDisksRequest{TargetPortal: n.Portal, IQN: target})
	if err != nil {
		return nil, err
	}
	return response.DiskIDs, nil
}

func (n *iscsiNode) setSecret(secret string) error {
	return errOf(n.API.SetMutualChapSecret(n.ctx(), &iscsi.SetMutualChapSecretRequest{MutualChapSecret: secret}))
}

// wantDisks returns the disks of a target, which must be count disks with numbers.
func (n *iscsiNode) wantDisks(target string, count int) (numbers []uint32) {
	n.t.Helper()
	ids, err := n.disks(target)
	n.must(err)
	for _, id := range ids {
		number, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			n.t.Fatalf("%q is not the number of a disk", id)
		}
		numbers = append(numbers, uint32(number))
	}
	if len(numbers) != count {
		n.t.Fatalf("the target has the disks %d, want %d of them", numbers, count)
	}
	return numbers
}

// wantNone checks that an error contains the word that drivers look for.
func (n *iscsiNode) wantNone(what string, err error) {
	n.t.Helper()
	wantError(n.t, what, err, fs.ErrNotExist)
	if err != nil && !strings.Contains(err.Error(), "ObjectNotFound") {
		n.t.Errorf("%s: the error %q does not contain ObjectNotFound", what, err)
	}
}

var iscsiCases = []testCase[*iscsiNode]{
	{name: "a target's life", run: func(n *iscsiNode) {
		twice(n.t, "AddTargetPortal", func() error { return n.add(n.Portal) })
		targets, err := n.discover(n.Portal)
		if n.must(err); !slices.Contains(targets, n.Open) {
			n.t.Fatalf("the portal offers %q, want %q among them", targets, n.Open)
		}
		twice(n.t, "ConnectTarget", func() error { return n.connect(n.Open) })
		first := n.wantDisks(n.Open, n.OpenDisks)
		if second := n.wantDisks(n.Open, n.OpenDisks); !slices.Equal(first, second) {
			n.t.Errorf("the disks are %d at first and %d then", first, second)
		}
		twice(n.t, "DisconnectTarget", func() error { return n.disconnect(n.Open) })
		_, err = n.disks(n.Open)
		n.wantNone("disks after the logout", err)
		twice(n.t, "RemoveTargetPortal", func() error { return n.remove(n.Portal) })
	}},
	{name: "portals are listed once, until they are removed", run: func(n *iscsiNode) {
		before := n.portals()
		n.must(n.add(n.Portal))
		n.must(n.add(n.Portal))
		if got := n.portals(); len(got) != len(before)+1 || !slices.Contains(got, *n.Portal) {
			n.t.Errorf("the portals are %v, want %v besides %v", got, *n.Portal, before)
		}
		n.must(n.remove(n.Portal))
		n.must(n.remove(n.Portal))
		if got := n.portals(); !slices.Equal(got, before) {
			n.t.Errorf("the portals are %v, want %v", got, before)
		}
	}},
	{name: "port 0 means 3260", run: func(n *iscsiNode) {
		n.need("portal at the usual port", n.Portal.TargetPort == 3260)
		n.must(n.add(&iscsi.TargetPortal{TargetAddress: n.Portal.TargetAddress}))
		if got := n.portals(); !slices.Contains(got, *n.Portal) {
			n.t.Errorf("the portals are %v, want %v among them", got, *n.Portal)
		}
	}},
	{name: "DiscoverTargetPortal lists the targets of one portal", run: func(n *iscsiNode) {
		n.need("second portal", n.Other != nil)
		n.must(n.add(n.Portal))
		n.must(n.add(n.Other))
		targets, err := n.discover(n.Other)
		if err != nil || !slices.Equal(targets, []string{n.OtherTarget}) {
			n.t.Errorf("the other portal offers %q, %v, want %q", targets, err, n.OtherTarget)
		}
		targets, err = n.discover(n.Portal)
		if err != nil || !slices.Contains(targets, n.Open) || slices.Contains(targets, n.OtherTarget) {
			n.t.Errorf("the portal offers %q, %v, want %q and not %q", targets, err, n.Open, n.OtherTarget)
		}
	}},
	{name: "DiscoverTargetPortal wants a portal that was added", run: func(n *iscsiNode) {
		_, err := n.discover(n.Portal)
		wantError(n.t, "discover", err, fs.ErrNotExist)
	}},
	{name: "a portal that does not answer is unavailable", run: func(n *iscsiNode) {
		n.need("dead portal", n.Dead != nil)
		wantError(n.t, "AddTargetPortal", n.add(n.Dead), ErrUnavailable)
	}},
	{name: "ConnectTarget wants a target that was discovered", run: func(n *iscsiNode) {
		wantError(n.t, "before the portal is known", n.connect(n.Open), fs.ErrNotExist)
		n.must(n.add(n.Portal))
		wantError(n.t, "to a target that does not exist", n.connect(n.Missing), fs.ErrNotExist)
		n.must(n.connect(n.Open))
	}},
	{name: "unknown targets and targets without a session", run: func(n *iscsiNode) {
		n.wantNone("DisconnectTarget before the portal is known", n.disconnect(n.Open))
		n.must(n.add(n.Portal))
		n.wantNone("DisconnectTarget of no target", n.disconnect(n.Missing))
		_, err := n.disks(n.Missing)
		n.wantNone("GetTargetDisks of no target", err)
		_, err = n.disks(n.Open)
		n.wantNone("GetTargetDisks without a session", err)
		n.must(n.disconnect(n.Open))
	}},
	{name: "names are taken in any case", run: func(n *iscsiNode) {
		n.must(n.add(n.Portal))
		n.must(n.connect(strings.ToUpper(n.Open)))
		n.must(n.connect(n.Open))
		n.wantDisks(strings.ToUpper(n.Open), n.OpenDisks)
		n.must(n.disconnect(strings.ToUpper(n.Open)))
		_, err := n.disks(n.Open)
		n.wantNone("disks after the logout", err)
	}},
	{name: "one-way CHAP", run: func(n *iscsiNode) {
		n.need("guarded target", n.Guarded != "")
		n.must(n.add(n.Portal))
		wantError(n.t, "without CHAP", n.connectAs(iscsi.NONE, n.User, n.Secret), fs.ErrPermission)
		wantError(n.t, "with a wrong secret", n.connectAs(iscsi.ONE_WAY_CHAP, n.User, "wrong"+n.Secret[5:]), fs.ErrPermission)
		wantError(n.t, "with a wrong user", n.connectAs(iscsi.ONE_WAY_CHAP, "x"+n.User, n.Secret), fs.ErrPermission)
		twice(n.t, "ConnectTarget", func() error { return n.connectAs(iscsi.ONE_WAY_CHAP, n.User, n.Secret) })
		n.must(n.disconnect(n.Guarded))
	}},
	{name: "mutual CHAP", uses: []string{"SetMutualChapSecret"}, run: func(n *iscsiNode) {
		n.need("guarded target", n.Guarded != "" && n.MutualSecret != "")
		n.must(n.add(n.Portal))
		n.must(n.setSecret("wrong" + n.MutualSecret[5:]))
		wantError(n.t, "with a wrong secret of the node", n.connectAs(iscsi.MUTUAL_CHAP, n.User, n.Secret), fs.ErrPermission)
		twice(n.t, "SetMutualChapSecret", func() error { return n.setSecret(n.MutualSecret) })
		twice(n.t, "ConnectTarget", func() error { return n.connectAs(iscsi.MUTUAL_CHAP, n.User, n.Secret) })
		n.must(n.disconnect(n.Guarded))
	}},
	{name: "requests that make no sense", run: func(n *iscsiNode) {
		n.must(n.add(n.Portal))
		for name, portal := range map[string]*iscsi.TargetPortal{
			"no portal":  nil,
			"no address": {TargetPort: 3260},
			"an address": {TargetAddress: "10.0.0.256"},
			"a port":     {TargetAddress: "10.0.0.10", TargetPort: 65536},
			"a newline":  {TargetAddress: "10.0.0.10\n"},
		} {
			wantError(n.t, "AddTargetPortal with "+name, n.add(portal), fs.ErrInvalid)
			wantError(n.t, "RemoveTargetPortal with "+name, n.remove(portal), fs.ErrInvalid)
			_, err := n.discover(portal)
			wantError(n.t, "DiscoverTargetPortal with "+name, err, fs.ErrInvalid)
			_, err = n.API.GetTargetDisks(n.ctx(), &iscsi.GetTargetDisksRequest{TargetPortal: portal, IQN: n.Open})
			wantError(n.t, "GetTargetDisks with "+name, err, fs.ErrInvalid)
		}
		for _, target := range []string{"", "storage", n.Open + " ", "iqn.2001-04.com.example:" + strings.Repeat("x", 300)} {
			wantError(n.t, "ConnectTarget", n.connect(target), fs.ErrInvalid)
			wantError(n.t, "DisconnectTarget", n.disconnect(target), fs.ErrInvalid)
			_, err := n.disks(target)
			wantError(n.t, "GetTargetDisks", err, fs.ErrInvalid)
		}
		if n.Guarded == "" {
			return
		}
		for _, secret := range []string{"", "elevenbytes", "seventeen-bytes-.", strings.Repeat("x", 1<<16)} {
			wantError(n.t, "ConnectTarget with a secret", n.connectAs(iscsi.ONE_WAY_CHAP, n.User, secret), fs.ErrInvalid)
			if !slices.Contains(n.Lacks, "SetMutualChapSecret") {
				wantError(n.t, "SetMutualChapSecret", n.setSecret(secret), fs.ErrInvalid)
			}
		}
		wantError(n.t, "ConnectTarget with a user", n.connectAs(iscsi.ONE_WAY_CHAP, "m\x00e", n.Secret), fs.ErrInvalid)
		wantError(n.t, "ConnectTarget with a type", n.connectAs(3, n.User, n.Secret), fs.ErrInvalid)
	}},
	{name: "without the service calls say which one to start", run: func(n *iscsiNode) {
		n.need("service to stop", n.SetService != nil)
		n.must(n.add(n.Portal))
		n.must(n.SetService("stopped"))
		_, discover := n.discover(n.Portal)
		_, disks := n.disks(n.Open)
		for name, err := range map[string]error{
			"AddTargetPortal": n.add(n.Portal), "RemoveTargetPortal": n.remove(n.Portal), "DiscoverTargetPortal": discover,
			"ConnectTarget": n.connect(n.Open), "DisconnectTarget": n.disconnect(n.Open), "GetTargetDisks": disks,
		} {
			wantError(n.t, name, err, ErrConflict)
			if err != nil && (!strings.Contains(err.Error(), "MSiSCSI") || !strings.Contains(err.Error(), "StartService")) {
				n.t.Errorf("%s: the error %q does not say what to do", name, err)
			}
		}
		n.must(n.SetService("running"))
		n.must(n.connect(n.Open))
	}},
	{name: "DisconnectTarget waits for disks in use", run: func(n *iscsiNode) {
		n.need("way to hold disks", n.Hold != nil)
		n.must(n.add(n.Portal))
		n.must(n.connect(n.Open))
		before := n.wantDisks(n.Open, n.OpenDisks)
		release, err := n.Hold(n.Open)
		n.must(err)
		defer release()
		wantError(n.t, "while they are in use", n.disconnect(n.Open), ErrBusy)
		if after := n.wantDisks(n.Open, n.OpenDisks); !slices.Equal(before, after) {
			n.t.Errorf("the disks are %d, want %d as before", after, before)
		}
		release()
		n.must(n.disconnect(n.Open))
	}},
	{name: "concurrent calls on one target all succeed", run: func(n *iscsiNode) {
		n.must(n.add(n.Portal))
		n.atOnce("ConnectTarget", func() error { return n.connect(n.Open) })
		n.wantDisks(n.Open, n.OpenDisks)
		n.atOnce("DisconnectTarget", func() error { return n.disconnect(n.Open) })
		_, err := n.disks(n.Open)
		n.wantNone("disks after the logout", err)
	}},
	{name: "the disks of a target are disks", run: func(n *iscsiNode) {
		n.need("disk and volume API", n.Disks != nil && n.Volumes != nil && n.WriteFile != nil)
		n.must(n.add(n.Portal))
		n.must(n.connect(n.Open))
		number := n.wantDisks(n.Open, n.OpenDisks)[0]
		id := n.format(number)
		stage := strings.TrimSuffix(n.Root, `\`) + `\stage`
		n.mount(id, stage)
		n.must(n.WriteFile(stage+`\file`, "on the target"))
		n.unmount(id, stage)
		n.must(n.disconnect(n.Open))
		_, err := n.Disks.GetDiskStats(n.ctx(), &disk.GetDiskStatsRequest{DiskNumber: number})
		wantError(n.t, "the disk after the logout", err, fs.ErrNotExist)
		_, err = n.Volumes.IsVolumeFormatted(n.ctx(), &volume.IsVolumeFormattedRequest{VolumeID: id})
		wantError(n.t, "the volume after the logout", err, fs.ErrNotExist)

		// After a new login everything is still there.
		n.must(n.connect(n.Open))
		if again := n.format(n.wantDisks(n.Open, n.OpenDisks)[0]); again != id {
			n.t.Errorf("the volume is %s, want %s as before", again, id)
		}
		n.mount(id, stage)
		if content, err := n.ReadFile(stage + `\file`); err != nil || content != "on the target" {
			n.t.Errorf("the file has %q, %v", content, err)
		}
		n.unmount(id, stage)
		n.must(n.disconnect(n.Open))
	}},
}

// format creates the volume of an empty disk, or finds the existing one.
func (n *iscsiNode) format(number uint32) (id string) {
	n.t.Helper()
	_, err := n.Disks.PartitionDisk(n.ctx(), &disk.PartitionDiskRequest{DiskNumber: number})
	n.must(err)
	list, err := n.Volumes.ListVolumesOnDisk(n.ctx(), &volume.ListVolumesOnDiskRequest{DiskNumber: number})
	if n.must(err); len(list.VolumeIDs) != 1 {
		n.t.Fatalf("the disk has the volumes %q, want one", list.VolumeIDs)
	}
	id = list.VolumeIDs[0]
	_, err = n.Volumes.FormatVolume(n.ctx(), &volume.FormatVolumeRequest{VolumeID: id})
	n.must(err)
	return id
}

func (n *iscsiNode) mount(id, path string) {
	n.t.Helper()
	_, err := n.Volumes.MountVolume(n.ctx(), &volume.MountVolumeRequest{VolumeID: id, TargetPath: path})
	n.must(err)
}

func (n *iscsiNode) unmount(id, path string) {
	n.t.Helper()
	_, err := n.Volumes.UnmountVolume(n.ctx(), &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: path})
	n.must(err)
}
