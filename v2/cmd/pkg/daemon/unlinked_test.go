package daemon

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/kubernetes-csi/csi-proxy/client"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	filesystemclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	volumeclient "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	kubeletDir = `C:\var\lib\kubelet`
	stagingDir = kubeletDir + `\plugins\kubernetes.io\csi\ebs.csi.aws.com\1`
	staged     = stagingDir + `\globalmount`
	podsDir    = kubeletDir + `\pods\`
)

// driverOf is a driver of a node with a staged volume, and a daemon that can restart.
type driverOf struct {
	t       *testing.T
	node    *winsim.Node
	files   *filesystemclient.Client
	volumes *volumeclient.Client
	stop    func()
}

func stagedNode(t *testing.T, others ...winsim.Disk) *winsim.Node {
	t.Helper()
	const id = `\\?\Volume{00000000-0000-4000-8000-000000000001}\`
	model := winsim.Default()
	model.RealTime = true // which is virtual in a bubble
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{ID: id, Files: []winsim.File{{Path: "rows", Content: "of the pod"}}}}}
	model.Disks = append(model.Disks, others...)
	node, err := winsim.New(model)
	require.NoError(t, err)
	require.NoError(t, node.MountFolder(staged, id))
	return node
}

// start starts the daemon, with what it knows about the node after a start: nothing.
func (d *driverOf) start(heal HealMode) {
	d.t.Helper()
	listeners := map[string]*bufconn.Listener{}
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(d.t.Context())
	go func() {
		ended <- Serve(ctx, Config{
			Hosts: HostsOn(d.node), WorkingDirs: []string{kubeletDir}, Heal: heal, APIGroups: []string{"filesystem/v1", "volume/v1"},
			Listen: func(group, _ string) (net.Listener, error) {
				listeners[group] = bufconn.Listen(64 << 10)
				return listeners[group], nil
			},
			Ready: func() { close(ready) },
		})
	}()
	<-ready
	dialer := func(group string) client.Option {
		return client.WithDialer(func(ctx context.Context) (net.Conn, error) { return listeners[group].DialContext(ctx) })
	}
	var err error
	d.files, err = filesystemclient.New(ctx, dialer("filesystem"))
	require.NoError(d.t, err)
	d.volumes, err = volumeclient.New(ctx, dialer("volume"))
	require.NoError(d.t, err)
	d.stop = func() {
		_, _ = d.files.Close(), d.volumes.Close()
		cancel()
		require.NoError(d.t, <-ended)
	}
}

func (d *driverOf) publish(pod string) {
	d.t.Helper()
	require.NoError(d.t, d.node.Mkdir(podsDir+pod))
	_, err := d.files.CreateSymlink(d.t.Context(), &filesystemv1.CreateSymlinkRequest{SourcePath: staged, TargetPath: podsDir + pod + `\mount`})
	require.NoError(d.t, err)
}

func (d *driverOf) unpublish(pod string) {
	d.t.Helper()
	_, err := d.files.Rmdir(d.t.Context(), &filesystemv1.RmdirRequest{Path: podsDir + pod + `\mount`, Force: true})
	require.NoError(d.t, err)
}

// ask is what NodeStage of vsphere and NodeUnstage of aws-ebs, gcp-pd and vsphere ask.
func (d *driverOf) ask() (mounted bool) {
	d.t.Helper()
	exists, err := d.files.PathExists(d.t.Context(), &filesystemv1.PathExistsRequest{Path: staged})
	require.NoError(d.t, err)
	_, err = d.volumes.GetVolumeIDFromTargetPath(d.t.Context(), &volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: staged})
	if exists.Exists != (err == nil) || err != nil && !strings.Contains(err.Error(), "because it does not exist") {
		d.t.Errorf("PathExists says %t, GetVolumeIDFromTargetPath %v", exists.Exists, err)
	}
	return exists.Exists
}

// TestUnlinked_TornAway: a pod is deleted after its disk was torn away. NodeUnstage finds nothing mounted, and the kubelet
// keeps the mounted folder. The daemon removes it, whatever it does about stale mounts.
func TestUnlinked_TornAway(t *testing.T) {
	offline := winsim.Disk{Size: winsim.GiB, Offline: true, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{}}}
	for name, c := range map[string]struct {
		heal  HealMode
		other []winsim.Disk
		gone  bool
	}{
		"by request":              {"", nil, true},
		"off":                     {HealOff, nil, true},
		"report":                  {HealReport, nil, true},
		"remove":                  {HealRemove, nil, true},
		"another disk is offline": {HealReport, []winsim.Disk{offline}, true},
		"a disk is hidden":        {HealRemove, []winsim.Disk{{Size: winsim.GiB, Hidden: true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &driverOf{t: t, node: stagedNode(t, c.other...)}
				d.start(c.heal)
				defer func() { d.stop() }()
				d.publish("a")
				time.Sleep(time.Minute)
				require.NoError(t, d.node.DetachDisk(1))
				d.unpublish("a")
				unpublished := time.Now()
				if mounted := d.ask(); mounted == c.gone {
					t.Fatalf("mounted %t", mounted)
				}
				if !d.node.Exists(staged) {
					t.Fatal("a question has removed the mount")
				}
				time.Sleep(150*time.Second - time.Since(unpublished))
				if left := d.node.Tree(stagingDir); c.gone != (left == stagingDir+"\n") {
					t.Errorf("there is:\n%s", left)
				}
			})
		})
	}
}

// TestUnlinked_Restart: a pod from before a restart of the daemon uses the volume when its disk drops off. Whatever drivers
// and operators ask, the mount stays: the pod never writes to drive C, and has its volume when the disk is back.
func TestUnlinked_Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &driverOf{t: t, node: stagedNode(t)}
		d.start(HealReport)
		d.publish("b")
		d.stop()
		d.start(HealReport)
		defer func() { d.stop() }()
		d.publish("c")
		d.unpublish("c")
		require.NoError(t, d.node.DetachDisk(1))
		for range 20 {
			if d.ask() {
				t.Error("a volume that is gone counts as mounted")
			}
			if d.node.WriteFile(podsDir+`b\mount\rows`, "lost") == nil {
				t.Fatalf("the pod has written to drive C:\n%s", d.node.Tree(staged))
			}
			time.Sleep(30 * time.Second)
		}
		_, err := d.node.ReattachDisk(1)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		if text, err := d.node.ReadFile(podsDir + `b\mount\rows`); text != "of the pod" {
			t.Errorf("the pod reads %q, %v", text, err)
		}
	})
}
