package mounter_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver on a node calls mounter.New(ctx). This one works on an emulated node.
func Example() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Azure())
	if err != nil {
		panic(err)
	}
	m, err := mounter.New(ctx, emulated(node))
	if err != nil {
		panic(err)
	}
	defer m.Close()

	const (
		staging = "/var/lib/kubelet/plugins/kubernetes.io/csi/disk.example.com/1/globalmount"
		target  = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount"
	)
	staged, err := m.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{LUN: "0", Adapter: "1"}})
	fmt.Println("staged disk", staged.DiskNumber, err)
	fmt.Println("published", m.Publish(ctx, staging, target))
	usage, err := m.Stats(ctx, target)
	fmt.Println("used", usage.UsedBytes > 0, err)
	fmt.Println("unpublished", m.Unpublish(ctx, target))
	fmt.Println("unstaged", m.Unstage(ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
	// Output:
	// staged disk 1 <nil>
	// published <nil>
	// used true <nil>
	// unpublished <nil>
	// unstaged <nil>
}

// Every error has a class, and is a gRPC status that a driver can return as it is.
func ExampleMounter_Stage_errors() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	if err != nil {
		panic(err)
	}
	m, err := mounter.New(ctx, emulated(node))
	if err != nil {
		panic(err)
	}
	defer m.Close()
	_, err = m.Stage(ctx, mounter.StageRequest{Path: `C:\var\lib\kubelet\staging`, Source: mounter.Disk{Serial: "vol0123"}})
	fmt.Println(errors.Is(err, failure.NotFound), failure.Code(err))
	// Output: true NotFound
}

// Stage logs in to the target and finds the disk of the LUN.
func ExampleISCSI() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	if err != nil {
		panic(err)
	}
	m, err := mounter.New(ctx, emulated(node))
	if err != nil {
		panic(err)
	}
	defer m.Close()
	source := mounter.ISCSI{
		Portals: []string{"10.0.0.10"}, Target: "iqn.2025-01.com.example:guarded", LUN: 1,
		CHAP: mounter.CHAP{Username: "winsim", Secret: "winsim-secret-1", MutualSecret: "winsim-mutual-1"},
	}
	staged, err := m.Stage(ctx, mounter.StageRequest{Path: `C:\var\lib\kubelet\staging`, Source: source})
	fmt.Println(staged.Paths, "path to it", err)
	// Output: 1 path to it <nil>
}

// A driver can keep its *mount.SafeFormatAndMount: the Mounter is in it.
func ExampleNewSafeFormatAndMount() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Azure())
	if err != nil {
		panic(err)
	}
	m, err := mounter.New(ctx, emulated(node))
	if err != nil {
		panic(err)
	}
	defer m.Close()
	safe := mounter.NewSafeFormatAndMount(m).SafeFormatAndMount

	kit := safe.Interface.(*mounter.Mounter)
	number, err := kit.FindDisk(ctx, mounter.Disk{LUN: "1"})
	fmt.Println("disk", number, err)
	const staging = `C:\var\lib\kubelet\staging`
	fmt.Println("mounted", safe.Mount(strconv.FormatUint(uint64(number), 10), staging, "ntfs", nil))
	fmt.Println("unstaged", kit.Unstage(ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
	// Output:
	// disk 2 <nil>
	// mounted <nil>
	// unstaged <nil>
}

// A HostProcess container reads a file of a volume mount. With containerd 1.6 mounts are below a directory of the
// container, and the node's own file can be at the path; with 1.7 they are at their path.
func Example_mountedFile() {
	mountedFile := func(path string) ([]byte, error) {
		if root := os.Getenv("CONTAINER_SANDBOX_MOUNT_POINT"); root != "" {
			content, err := os.ReadFile(filepath.Join(root, path[len(filepath.VolumeName(path)):]))
			if !errors.Is(err, fs.ErrNotExist) {
				return content, err
			}
		}
		return os.ReadFile(path)
	}

	dir, err := os.MkdirTemp("", "container")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path, root := filepath.Join(dir, "token"), filepath.Join(dir, "root")
	mounted := filepath.Join(root, path[len(filepath.VolumeName(path)):])
	if err := errors.Join(os.WriteFile(path, []byte("at its path"), 0o600), os.MkdirAll(filepath.Dir(mounted), 0o700)); err != nil {
		panic(err)
	}
	show := func() {
		content, err := mountedFile(path)
		fmt.Println(string(content), err)
	}
	show()
	os.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", root)
	defer os.Unsetenv("CONTAINER_SANDBOX_MOUNT_POINT")
	show() // containerd 1.7
	if err := os.WriteFile(mounted, []byte("mounted"), 0o600); err != nil {
		panic(err)
	}
	show() // containerd 1.6
	// Output:
	// at its path <nil>
	// at its path <nil>
	// mounted <nil>
}

// emulated is Library of package mountertest, which is a module of its own.
func emulated(node *winsim.Node) mounter.Option {
	return mounter.WithHosts(mounter.Hosts{
		Disk: node.Disk(), Volume: node.Volume(), Filesystem: node.Filesystem(), SMB: node.SMB(), ISCSI: node.ISCSI(),
		Node: func(options ...nodeapi.Option) (*nodeapi.Node, error) { return nodeapi.NewOn(node, options...) },
	})
}
