package node_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// everywhere is a machine on which one volume is mounted at thousands of folders.
type everywhere struct{ *winsim.Node }

func (m everywhere) VolumePaths(ctx context.Context, id win.VolumeID) ([]string, error) {
	paths, err := m.Node.VolumePaths(ctx, id)
	if id != data {
		return paths, err
	}
	for i := range 10_000 {
		paths = append(paths, fmt.Sprintf(`C:\%s%d\`, strings.Repeat("x", 200), i))
	}
	for range 1000 { // until not even a drive fits
		paths = append(paths, `C:\y\`)
	}
	return append(paths, `Z:\`), err
}

// TestVolumes_MountPaths: they fit into the answer, drives come first, and a problem of that
// volume, and of no other, says what is left out.
func TestVolumes_MountPaths(t *testing.T) {
	got := describe(t, newOn(t, everywhere{newNode(t, zoo())}))
	for _, v := range got.Volumes {
		bytes := 0
		for _, path := range v.MountPaths {
			bytes += len(path)
		}
		if v.ID != data {
			if len(v.Problems) != 0 {
				t.Errorf("%s: %q", v.ID, v.Problems)
			}
			continue
		}
		want := fmt.Sprintf(" ! mount paths: only %d of 11001 are listed, because the answer would be too long\n", len(v.MountPaths))
		if bytes > 1<<20 || bytes < 1<<19 || !slices.Contains(v.MountPaths, `Z:\`) || problemText(v.Problems) != want {
			t.Errorf("%d paths with %d bytes, problems %q", len(v.MountPaths), bytes, v.Problems)
		}
	}
}

// formatted is what Describe reports about how a volume was formatted.
func formatted(t *testing.T, description *wholenode.Description, id string) string {
	t.Helper()
	for _, v := range description.Volumes {
		if v.ID == id {
			return fmt.Sprintf("%s %q %d %s%s", v.FileSystem, v.Label, v.ClusterSize, v.RootAccess, strings.TrimSpace(problemText(v.Problems)))
		}
	}
	t.Fatalf("there is no volume %s", id)
	return ""
}

// TestVolumes_Format: label, cluster size and root access are those of the file system, with the
// name of the root access if it has one.
func TestVolumes_Format(t *testing.T) {
	const fat = `\\?\Volume{00000000-0000-0000-0000-000000000002}\`
	node := newNode(t, zoo())
	i := inspector(t, node)
	check := func(id, want string) {
		t.Helper()
		got := describe(t, i)
		if text := formatted(t, &got, id); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	check(data, `NTFS "" 4096 default`)
	check(fat, `FAT32 "" 0 `)
	ctx := t.Context()
	prepare(t, node.Format(ctx, data, win.FormatOptions{ClusterSize: 64 << 10, Label: "Größe 1"}))
	check(data, `NTFS "Größe 1" 65536 default`)
	for list, want := range map[string]string{
		// As the daemon sets it, and as Windows may list it.
		"D:P(A;OICI;0x1f01ff;;;S-1-5-18)(A;OICI;0x1f01ff;;;S-1-5-32-544)(A;OICI;0x1301bf;;;S-1-5-32-545)(A;OICIIO;0x10000000;;;S-1-3-0)": volumeapi.UsersModify,
		"D:PAI(A;OICIIO;FA;;;CO)(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1301bf;;;BU)":                                                  volumeapi.UsersModify,
		"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)": "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
	} {
		prepare(t, node.SetRootSecurity(ctx, data, list))
		check(data, `NTFS "Größe 1" 65536 `+want)
	}
}

// longList is a machine whose volumes have a very long access list, of a kind that sddl refuses.
type longList struct{ *winsim.Node }

func (longList) RootSecurity(context.Context, win.VolumeID) (string, error) {
	return "D:" + strings.Repeat("(D;;FA;;;AN)", 1000), nil
}

func TestVolumes_LongRootAccess(t *testing.T) {
	got := describe(t, newOn(t, longList{newNode(t, zoo())}))
	const want = `NTFS "" 4096 ! root access: the access list has 12002 bytes, and only 4096 fit into the answer`
	if text := formatted(t, &got, data); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// TestVolumes_RootHangs: a root directory that cannot be opened costs its own answer, and not the
// mount paths and other volumes.
func TestVolumes_RootHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, zoo())
		prepare(t, node.MountFolder(kubelet+`\plugins\x`, data))
		inject(t, node, winsim.Fault{Call: "RootSecurity", Object: data, Delay: time.Hour})
		begin := time.Now()
		got := describe(t, inspector(t, node))
		if text, want := formatted(t, &got, data), `NTFS "" 4096 ! root access: no answer in time`; text != want {
			t.Errorf("got %s, want %s", text, want)
		}
		for _, v := range got.Volumes {
			if v.ID == data && len(v.MountPaths) != 1 || v.ID != data && len(v.Problems) != 0 {
				t.Errorf("%s: mounted at %q, problems %q", v.ID, v.MountPaths, v.Problems)
			}
		}
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestDescribeVolumes: it reports of a volume what Describe does, and asks nothing else.
func TestDescribeVolumes(t *testing.T) {
	machine := newNode(t, zoo())
	i := newOn(t, machine)
	whole := describe(t, i)
	for _, want := range whole.Volumes {
		if want.State == wholenode.NotReady {
			continue // its disk alone shows where it is
		}
		want.ReadOnly = nil
		machine.ResetCalls()
		got, err := i.DescribeVolumes(t.Context(), want.ID)
		if err != nil || len(got) != 1 || !cmp.Equal(got[0], want) {
			t.Errorf("%v: %s", err, cmp.Diff(append(got, wholenode.Volume{})[0], want))
		}
		if calls := machine.Calls(); calls["VolumeIDs"]+calls["DiskDevices"] != 0 || calls["VolumePaths"] != 1 {
			t.Errorf("%s: %v", want.ID, calls)
		}
	}
	const gone = `\\?\Volume{00000000-0000-0000-0000-00000000dead}\`
	if got, err := i.DescribeVolumes(t.Context(), gone, data); err != nil || len(got) != 1 || got[0].ID != data {
		t.Errorf("%+v, %v", got, err)
	}
	for _, ids := range [][]string{{`C:\`}, slices.Repeat([]string{data}, 129)} {
		if got, err := i.DescribeVolumes(t.Context(), ids...); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
