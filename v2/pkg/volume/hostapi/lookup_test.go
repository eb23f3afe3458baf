package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const mount = `C:\var\lib\kubelet\plugins\globalmount`

// links has a volume mounted at mount, and all kinds of links.
func links(t *testing.T, state winsim.VolumeState) *winsim.Node {
	t.Helper()
	v := formatted()
	v.State = state
	v.Files = append(v.Files, winsim.File{Path: `\dir`})
	model := modelWith(gpt(winsim.GiB, v), gpt(winsim.GiB, winsim.Volume{ID: volumeID(2), Letter: "D"}))
	node := newNode(t, model)
	must(t, node.MountFolder(mount, id))
	must(t, node.Mkdir(pods+`\dir`))
	must(t, node.WriteFile(pods+`\file`, "data"))
	for path, to := range map[string]string{
		"publish":     mount,
		"again":       pods + `\publish`,
		"slash":       mount + `\`,
		"relative":    `..\plugins\.\globalmount`,
		"rooted":      `\var\lib\kubelet\plugins\globalmount`,
		"volume":      id,
		"volume dir":  id + `dir`,
		"dir link":    pods + `\dir`,
		"inside":      mount + `\dir`,
		"gone":        pods + `\nothing`,
		"server":      `\\server\share\dir`,
		"drive D":     `D:\`,
		"no drive":    `X:\dir`,
		"loop":        pods + `\loop`,
		"globalroot":  `\\?\GLOBALROOT\Device\HarddiskVolume3`,
		"bad name":    `C:\dir\a:b`,
		"long prefix": `\\?\` + mount,
	} {
		must(t, node.Symlink(pods+`\`+path, to))
	}
	must(t, node.Junction(pods+`\junction`, mount))
	return node
}

func TestGetVolumeIDFromTargetPath(t *testing.T) {
	for _, state := range []winsim.VolumeState{winsim.Healthy, winsim.Raw, winsim.NotReady, winsim.Gone, winsim.Locked} {
		t.Run("volume "+string(state), func(t *testing.T) {
			host := volumeapi.NewOn(links(t, state))
			for _, path := range []string{mount, pods + `\publish`, pods + `\again`, pods + `\slash`, pods + `\relative`, pods + `\rooted`, pods + `\volume`, pods + `\junction`, pods + `\long prefix`} {
				wantMounted(t, host, path, id)
			}
			wantMounted(t, host, `C:\`, winsim.SystemVolume)
			wantMounted(t, host, `D:\`, volumeID(2))
			wantMounted(t, host, pods+`\drive D`, volumeID(2))
		})
	}
}

func TestGetVolumeIDFromTargetPath_NotMounted(t *testing.T) {
	const ebs = "because it does not exist"
	host := volumeapi.NewOn(links(t, winsim.Healthy))
	for path, c := range map[string]struct {
		kind winerr.Kind
		text string
	}{
		pods + `\dir`:          {winerr.NotFound, ebs},
		pods + `\file`:         {winerr.NotFound, ebs},
		pods + `\nothing`:      {winerr.NotFound, ebs},
		pods + `\nothing\more`: {winerr.NotFound, ebs},
		mount + `\dir`:         {winerr.NotFound, ebs},
		pods + `\dir link`:     {winerr.NotFound, ebs},
		pods + `\gone`:         {winerr.NotFound, ebs},
		pods + `\inside`:       {winerr.NotFound, ebs},
		pods + `\volume dir`:   {winerr.NotFound, "not to the volume itself"},
		pods + `\server`:       {winerr.NotFound, "not a local volume"},
		pods + `\no drive`:     {winerr.NotFound, `X:\`},
		`X:\`:                  {winerr.NotFound, "no drive"},
		pods + `\loop`:         {winerr.InUse, "form a loop"},
		pods + `\globalroot`:   {winerr.Unsupported, "not on a drive"},
		pods + `\bad name`:     {winerr.Unsupported, "stream"},
	} {
		_, err := host.GetVolumeIDFromTargetPath(path)
		wantKind(t, path, err, c.kind, c.text)
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error %q does not name %s", err, path)
		}
	}
}

// TestGetVolumeIDFromTargetPath_Calls pins the budget: a call for each link, and one for the volume.
func TestGetVolumeIDFromTargetPath_Calls(t *testing.T) {
	for _, hops := range []int{0, 1, 10, 62} {
		node := nodeWith(t, formatted())
		must(t, node.MountFolder(pods+`\0`, id))
		for i := range hops {
			must(t, node.Symlink(fmt.Sprintf(`%s\%d`, pods, i+1), fmt.Sprintf(`%s\%d`, pods, i)))
		}
		node.ResetCalls()
		wantMounted(t, volumeapi.NewOn(node), fmt.Sprintf(`%s\%d`, pods, hops), id)
		if calls := node.Calls(); len(calls) != 2 || calls["ReparsePoint"] != hops+1 || calls["DeviceNumber"] != 1 {
			t.Errorf("%d links take %v", hops, calls)
		}
	}
}

func TestGetClosestVolumeIDFromTargetPath(t *testing.T) {
	for _, state := range []winsim.VolumeState{winsim.Healthy, winsim.Raw, winsim.NotReady, winsim.Gone, winsim.Locked} {
		t.Run("volume "+string(state), func(t *testing.T) {
			host := volumeapi.NewOn(links(t, state))
			for path, want := range map[string]string{
				`C:\`:                       winsim.SystemVolume,
				`D:\nothing\at\all`:         volumeID(2),
				pods:                        winsim.SystemVolume,
				pods + `\file`:              winsim.SystemVolume,
				pods + `\nothing\here\yet`:  winsim.SystemVolume,
				pods + `\dir link`:          winsim.SystemVolume,
				pods + `\gone`:              winsim.SystemVolume,
				pods + `\drive D`:           volumeID(2),
				pods + `\drive D\not\there`: volumeID(2),
				mount:                       id,
				mount + `\dir`:              id,
				mount + `\nothing\here`:     id,
				pods + `\publish`:           id,
				pods + `\publish\dir`:       id,
				pods + `\publish\not\there`: id,
				pods + `\volume dir`:        id,
				pods + `\inside`:            id,
				pods + `\junction\x`:        id,
				pods + `\relative`:          id,
			} {
				if got, err := host.GetClosestVolumeIDFromTargetPath(path); err != nil || got != want {
					t.Errorf("closest to %s is %q, %v, want %q", path, got, err, want)
				}
			}
			for path, c := range map[string]struct {
				kind winerr.Kind
				text string
			}{
				pods + `\server`:     {winerr.NotFound, "not a local volume"},
				pods + `\server\dir`: {winerr.NotFound, "not a local volume"},
				pods + `\no drive`:   {winerr.NotFound, `X:\`},
				`X:\`:                {winerr.NotFound, "no drive"},
				pods + `\loop`:       {winerr.InUse, "form a loop"},
			} {
				_, err := host.GetClosestVolumeIDFromTargetPath(path)
				wantKind(t, path, err, c.kind, c.text)
			}
		})
	}
}

// TestLinksThatWindowsRefuses: calls about volumes do not follow links that opens do not.
func TestLinksThatWindowsRefuses(t *testing.T) {
	for target, code := range map[string]winerr.Code{
		`..\b`: 0, `..`: 0,
		`..\..\b`: winerr.InvalidReparseData, `..\..\..\b`: winerr.InvalidReparseData, `..\\b`: winerr.InvalidName,
	} {
		const link = `C:\a\link`
		node := nodeWith(t, formatted())
		must(t, node.Mkdir(`C:\b\c`))
		must(t, node.Mkdir(`C:\c`))
		must(t, node.Symlink(link, target))
		host := volumeapi.NewOn(node)
		_, closest := host.GetClosestVolumeIDFromTargetPath(link + `\c`)
		_, mounted := host.GetVolumeIDFromTargetPath(link)
		if code != 0 && winerr.CodeOf(mounted) != code {
			t.Errorf("a link to %s: %v, want error %d", target, mounted, code)
		}
		if _, opened := node.TargetInfo(t.Context(), win.Following(link)); winerr.CodeOf(opened) != code || winerr.CodeOf(closest) != code {
			t.Errorf("below a link to %s: %v, and an open returns %v, want error %d", target, closest, opened, code)
		}
	}
}

func TestGetClosestVolumeIDFromTargetPath_Denied(t *testing.T) {
	node := links(t, winsim.Healthy)
	inject(t, node, winsim.Fault{Call: "Location", Error: uint32(winerr.AccessDenied)})
	_, err := volumeapi.NewOn(node).GetClosestVolumeIDFromTargetPath(mount)
	wantKind(t, "denied", err, winerr.Denied, mount)
}

// otherTag is a machine on which nothing but a file with a tag of another kind exists.
type otherTag struct{ *winsim.Node }

func (m otherTag) ReparsePoint(context.Context, win.Path) (win.ReparsePoint, error) {
	const dedup = 0x80000013
	return win.ReparsePoint{Tag: dedup}, nil
}

func (m otherTag) OpenDirectory(ctx context.Context, path win.Path) (win.Directory, error) {
	dir, err := m.Node.OpenDirectory(ctx, path)
	return otherTagDirectory{m, dir}, err
}

type otherTagDirectory struct {
	m otherTag
	win.Directory
}

func (d otherTagDirectory) ReparsePoint(ctx context.Context, name string) (win.ReparsePoint, error) {
	return d.m.ReparsePoint(ctx, win.Path{Rest: name})
}

func TestGetVolumeIDFromTargetPath_OtherTag(t *testing.T) {
	host := volumeapi.NewOn(otherTag{nodeWith(t, formatted())})
	_, err := host.GetVolumeIDFromTargetPath(pods)
	wantKind(t, "deduplicated", err, winerr.NotFound, "because it does not exist")
	must(t, host.UnmountVolume(id, pods))
}
