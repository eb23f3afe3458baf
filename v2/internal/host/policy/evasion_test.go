package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestLeadsTo_OnlyWhatIsCertain: targets that the kernel may understand otherwise than we do
// are distinguished, or refused.
func TestLeadsTo_OnlyWhatIsCertain(t *testing.T) {
	at := win.Beneath(work, work+`\dir\link`)
	symlink := func(substitute string, relative bool) win.ReparsePoint {
		return win.ReparsePoint{Tag: win.TagSymlink, Substitute: substitute, Relative: relative}
	}
	for _, c := range []struct {
		point   win.ReparsePoint
		want    string // a path, or an error
		guessed bool
	}{
		{symlink(`\??\C:\x\`, false), `C:\x`, false},
		{symlink(`\??\c:\X\..\y`, false), `C:\y`, false},
		{symlink(`x`, true), work + `\dir\x`, false},
		{symlink(`.\x\y`, true), work + `\dir\x\y`, false},
		{symlink(`x\..\y`, true), work + `\dir\y`, true},
		{symlink(`..\y`, true), work + `\y`, true},
		{symlink(`\y`, true), `C:\y`, true},
		{symlink(``, true), work + `\dir`, true},
		{symlink(`x`, false), "error", false},
		{symlink(`\Device\HarddiskVolume2\Windows`, false), "error", false},
		{symlink(`C:\Windows`, false), "error", false},
		{symlink(`\??\PhysicalDrive0`, false), "error", false},
		{symlink(`\??\C:\a:b`, false), "error", false},
		{symlink(`\??\C:\PROGRA~1`, false), "error", false},
		{symlink(`\??\C:/Windows`, false), "error", false},
		{symlink(`C:x`, true), "error", false},
		{symlink(`.\\x`, true), "error", false},
		{win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\Device\Mup\x`}, "error", false},
		{win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\C:`}, `C:\`, false},
		{win.ReparsePoint{Tag: 0xA000001D, Substitute: `\??\C:\x`}, "error", false},
	} {
		hop, err := policy.LeadsTo(at, c.point)
		if (err != nil) != (c.want == "error") || (err == nil && (hop.Path != c.want || hop.Guessed != c.guessed)) {
			t.Errorf("%+v: %+v, %v, want %s", c.point, hop, err, c.want)
		}
	}
}

// TestLeadsTo_BeyondTheRoot: dots may lead to the root, on a drive and on a volume, and no further.
func TestLeadsTo_BeyondTheRoot(t *testing.T) {
	volume := win.Path{Base: dataVolume}
	for _, c := range []struct {
		at     win.Path
		target string
		want   policy.Hop
		code   winerr.Code
	}{
		{win.Beneath(`C:\`, `C:\a\link`), `..`, policy.Hop{Path: `C:\`}, 0},
		{win.Beneath(`C:\`, `C:\a\link`), `..\b`, policy.Hop{Path: `C:\b`}, 0},
		{win.Beneath(`C:\`, `C:\a\link`), `..\..`, policy.Hop{}, winerr.InvalidReparseData},
		{win.Beneath(`C:\`, `C:\a\link`), `..\..\b`, policy.Hop{}, winerr.InvalidReparseData},
		{win.Beneath(`C:\`, `C:\a\link`), `b\..\..\..\a\b`, policy.Hop{}, winerr.InvalidReparseData},
		{win.Beneath(`C:\`, `C:\a\link`), `\..\b`, policy.Hop{}, winerr.InvalidReparseData},
		{win.Beneath(`C:\`, `C:\a\link`), `..\\b`, policy.Hop{}, winerr.InvalidName},
		{win.Beneath(`C:\`, `C:\a\link`), `..\..\\b`, policy.Hop{}, winerr.InvalidName},
		{win.Beneath(`C:\`, `C:\link`), `.`, policy.Hop{Path: `C:\`}, 0},
		{win.Beneath(`C:\`, `C:\link`), `..`, policy.Hop{}, winerr.InvalidReparseData},
		{win.Beneath(`C:\a`, `C:\a\link`), `..\..\b`, policy.Hop{}, winerr.InvalidReparseData},
		{volume.Join("a", "link"), `..\b`, policy.Hop{Volume: dataVolume, Below: []string{"b"}}, 0},
		{volume.Join("a", "link"), `..\..\b`, policy.Hop{}, winerr.InvalidReparseData},
		{volume.Join("link"), `..`, policy.Hop{}, winerr.InvalidReparseData},
	} {
		hop, err := policy.LeadsTo(c.at, win.ReparsePoint{Tag: win.TagSymlink, Substitute: c.target, Relative: true})
		c.want.Guessed = strings.Contains(c.target, "..")
		if diff := cmp.Diff(c.want, hop); diff != "" || winerr.CodeOf(err) != c.code {
			t.Errorf("%s at %s: error %v, want %d (-want +got):\n%s", c.target, c.at, err, c.code, diff)
		}
	}
}

// TestUnknownLinks: what stands for something else, in a way that we do not know, is neither
// followed nor taken for a directory. What only has a tag is what it looks like.
func TestUnknownLinks(t *testing.T) {
	m := model()
	m.Files = append(m.Files,
		winsim.File{Path: work + `\wsl`, Tag: 0xA000001D},
		winsim.File{Path: work + `\cloud`, Tag: 0x9000001A},
	)
	w := newWorldOf(t, m)
	for call, want := range map[string]error{
		"Mkdir": winerr.Denied, "CreateSymlink to": winerr.Denied, "PathValid": winerr.Denied, "IsSymlink": nil, "PathExists": nil,
	} {
		if err := w.run(call, work+`\wsl`); (want == nil) != (err == nil) || (want != nil && !errors.Is(err, want)) {
			t.Errorf("%s of an unknown link: %v, want %v", call, err, want)
		}
	}
	for _, call := range []string{"Mkdir", "CreateSymlink at"} {
		if err := w.run(call, work+`\wsl\x`); !errors.Is(err, winerr.Denied) {
			t.Errorf("%s below an unknown link: %v", call, err)
		}
	}
	check(t, w.run("Mkdir", work+`\cloud\x\y`), w.node.Symlink(work+`\cloud\link`, work+`\a`), w.run("PathExists", work+`\cloud\link\b\c`))
}

// TestSecondNames: a working directory keeps its place under all of its names.
func TestSecondNames(t *testing.T) {
	t.Run("by an operator's link", func(t *testing.T) {
		w := newWorld(t)
		check(t, w.node.Mkdir(`C:\really\here\plugins\foo`), w.node.Junction(`C:\kubelet`, `C:\really\here`))
		files, err := filesystem.New(w.node.Filesystem(), filesystem.WorkingDirs(`C:\kubelet`, `C:\really\here\plugins\foo`))
		check(t, err)
		volumes, err := volume.New(w.node.Volume(), volume.WorkingDirs(`C:\kubelet`, `C:\really\here\plugins\foo`))
		check(t, err)
		wantKept(t, files, volumes, `C:\kubelet\plugins`)
		wantKept(t, files, volumes, `C:\kubelet\plugins\foo`)
		_, err = files.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: `C:\kubelet\plugins\foo\x`})
		check(t, err)
		_, err = files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: `C:\kubelet\plugins\foo\x`})
		check(t, err)
	})
	t.Run("by a short name", func(t *testing.T) {
		w := newWorld(t)
		check(t, w.node.Create(winsim.File{Path: `C:\outer\plugins-of-all`, Short: "PLUG"}), w.node.Mkdir(`C:\outer\plugins-of-all\foo`))
		files, err := filesystem.New(w.node.Filesystem(), filesystem.WorkingDirs(`C:\outer`, `C:\outer\plugins-of-all\foo`))
		check(t, err)
		volumes, err := volume.New(w.node.Volume(), volume.WorkingDirs(`C:\outer`, `C:\outer\plugins-of-all\foo`))
		check(t, err)
		wantKept(t, files, volumes, `C:\outer\PLUG`)
		wantKept(t, files, volumes, `C:\outer\PLUG\foo`)
	})
}

// wantKept tries to get rid of a directory.
func wantKept(t *testing.T, files filesystem.Interface, volumes volume.Interface, path string) {
	t.Helper()
	_, remove := files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: path, Force: true})
	_, empty := files.RmdirContents(t.Context(), &filesystem.RmdirContentsRequest{Path: path})
	_, mount := volumes.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: dataVolume, TargetPath: path})
	for call, err := range map[string]error{"Rmdir": remove, "RmdirContents": empty, "MountVolume": mount} {
		if !errors.Is(err, winerr.Denied) {
			t.Errorf("%s of %s: %v, want it denied", call, path, err)
		}
	}
}

// TestMountVolume_OfTheSystem: a folder of the working directory does not show the node.
func TestMountVolume_OfTheSystem(t *testing.T) {
	w := newWorld(t)
	id := systemVolume(t, w.node)
	_, err := w.vol.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: id, TargetPath: work + `\x`})
	if !errors.Is(err, winerr.Denied) || w.node.Exists(work+`\x`) {
		t.Errorf("%v, want it denied and nothing made", err)
	}
}

// TestManyLinks: 63 links are followed, as Windows does, and no more.
func TestManyLinks(t *testing.T) {
	w := newWorld(t)
	for i := range 64 {
		check(t, w.node.Symlink(fmt.Sprintf(`%s\l%d`, work, i+1), fmt.Sprintf(`%s\l%d`, work, i)))
	}
	check(t, w.node.Symlink(work+`\l0`, work+`\a`))
	check(t, w.run("PathExists", work+`\l61\b`))
	for _, path := range []string{work + `\l63\b`, work + `\l64\b`} {
		if err := w.run("PathExists", path); !errors.Is(err, winerr.InUse) {
			t.Errorf("%s: %v, want too many links", path, err)
		}
	}
}

// TestTooLongAfterALink: a path can outgrow what Windows can handle on the way.
func TestTooLongAfterALink(t *testing.T) {
	w := newWorld(t)
	long := work + strings.Repeat(`\`+strings.Repeat("x", 200), 80)
	check(t, w.node.Mkdir(long), w.node.Symlink(work+`\s`, long[:4000]))
	err := w.run("PathExists", work+`\s`+strings.Repeat(`\`+strings.Repeat("y", 200), 155))
	if !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%.500v, want it refused for its length", err)
	}
}
