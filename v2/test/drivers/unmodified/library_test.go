//go:build linux && wine

package unmodified

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/rig"
)

// TestLibrary runs aws-ebs as a HostProcess container, where it links the library instead of calling the
// daemon. Its sources stay as they are; the module csi-proxy/v2 is ours. Disks and volumes are those of the
// rig, files and links those of Wine, which must store links.
func TestLibrary(t *testing.T) {
	d := elasticBlockStore()
	p, err := prefix.Need(t).New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close the prefix: %v", err)
		}
	})
	if links, err := p.StoresLinks(t.Context()); err != nil {
		t.Fatal(err)
	} else if !links {
		t.Skip("this Wine stores no links; Wine 11 does")
	}
	exe := libraryProgram(t, d)
	require.NoError(t, rig.Build(t.Context()))
	machine, err := rig.Start(context.WithoutCancel(t.Context()), p, rig.Config{Preset: "ebs-nvme", Files: true, NoDaemon: true})
	require.NoError(t, err)
	require.NoError(t, p.Copy(exe))
	n := &node{prefix: p}
	t.Cleanup(func() {
		if t.Failed() {
			n.log(t)
			t.Log(machine.Requests())
		}
	})
	d.args = append(d.args, "--windows-host-process=true")
	n.startDriver(t, &d, `C:\`+filepath.Base(exe))
	paths, _ := n.prepare(t, &d, 0)
	v := d.volume(0)
	c := calls{}
	for range 2 {
		c.make(t, "NodeStageVolume", codes.OK, func(ctx context.Context) error { return n.stage(ctx, v, paths) })
	}
	for range 2 {
		c.make(t, "NodePublishVolume", codes.OK, func(ctx context.Context) error { return n.publish(ctx, v, paths) })
	}
	// A pod writes, and the file is on the volume.
	if _, err := p.Run(t.Context(), "cmd", "/c", `echo data>`+paths.target+`\file`); err != nil {
		t.Error(err)
	}
	if found, _ := filepath.Glob(p.Path(`C:\volumes\*\file`)); len(found) != 1 {
		t.Errorf("what the pod wrote is at %q, want one volume", found)
	}
	c.make(t, "NodeGetVolumeStats", codes.OK, func(ctx context.Context) error {
		_, err := n.csi.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: paths.target, StagingTargetPath: paths.stage})
		return err
	})
	for range 2 {
		c.make(t, "NodeUnpublishVolume", codes.OK, func(ctx context.Context) error { return n.unpublish(ctx, v, paths) })
	}
	for range 2 {
		c.make(t, "NodeUnstageVolume", codes.OK, func(ctx context.Context) error { return n.unstage(ctx, v, paths) })
	}
	for _, path := range []string{paths.target, paths.stage} {
		for _, name := range []string{path, path + "?"} { // as Wine names links
			if _, err := os.Lstat(p.Path(name)); err == nil {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// libraryProgram builds a driver with our library, in a copy of its sources.
func libraryProgram(t *testing.T, d driver) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	dir := filepath.Join(root(t), "bin", "drivers")
	sources, output := filepath.Join(dir, "src", d.name+"-library"), filepath.Join(dir, d.name+"-library.exe")
	require.NoError(t, d.program.Copy(ctx, sources))
	for _, args := range [][]string{
		{"mod", "edit", "-replace=github.com/kubernetes-csi/csi-proxy/v2=" + root(t)},
		{"build", "-p=1", "-o", output, "-ldflags=-s -w", d.program.Package},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = sources
		cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod -trimpath -buildvcs=false")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, text)
		}
	}
	return output
}
