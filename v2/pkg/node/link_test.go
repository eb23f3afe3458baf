package node_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// linkText are the links of a node, with paths below kubelet's.
func linkText(n wholenode.Description) string {
	return strings.ReplaceAll(text(wholenode.Description{Links: n.Links, Problems: n.Problems}), kubelet, "K")
}

func TestLinks(t *testing.T) {
	node := newNode(t, zoo())
	linked(t, node)
	const want = `link K\plugins\kubernetes.io\csi\d\1\globalmount to da7a0000-0000-0000-0000-000000000000: 
link K\pods\1\volumes\kubernetes.io~csi\gone\mount to -: its target is gone: it does not exist (Windows error 2) K\plugins\none
link K\pods\1\volumes\kubernetes.io~csi\loop\mount to -: ! it leads in a circle
link K\pods\1\volumes\kubernetes.io~csi\out\mount to -:  C:\Windows
link K\pods\1\volumes\kubernetes.io~csi\pv\mount to da7a0000-0000-0000-0000-000000000000: 
link K\pods\1\volumes\kubernetes.io~csi\share\mount to \\files\data: 
link K\pods\1\volumes\kubernetes.io~csi\sub\mount to da7a0000-0000-0000-0000-000000000000: its target is gone: it does not exist (Windows error 2) \\?\Volume{da7a0000-0000-0000-0000-000000000000}\none
`
	if diff := cmp.Diff(want, linkText(describe(t, inspector(t, node)))); diff != "" {
		t.Error(diff)
	}
	// The volume goes: its mount is stale, and so is the link to the mount.
	prepare(t, node.SetVolumeState(data, winsim.Gone))
	const stale = ": its volume is gone, or on a disk that is offline\n"
	got := linkText(describe(t, inspector(t, node)))
	for _, path := range []string{`K\plugins\kubernetes.io\csi\d\1\globalmount`, `K\pods\1\volumes\kubernetes.io~csi\pv\mount`} {
		if want := "link " + path + " to da7a0000-0000-0000-0000-000000000000" + stale; !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestLinks_NotAsked: a caller that does not ask for links, or may not, gets none.
func TestLinks_NotAsked(t *testing.T) {
	node := newNode(t, zoo())
	linked(t, node)
	node.ResetCalls()
	for _, c := range []struct {
		inspector *wholenode.Node
		links     bool
	}{{inspector(t, node), false}, {newOn(t, node), true}} {
		var parts []wholenode.Part
		if c.links {
			parts = append(parts, wholenode.Links)
		}
		got, err := c.inspector.Describe(t.Context(), parts...)
		if err != nil || got.Links != nil || got.LinksSearched {
			t.Errorf("got %q, searched %v, %v", got.Links, got.LinksSearched, err)
		}
	}
	if n := node.Calls()["ListDirectory"]; n != 0 {
		t.Errorf("%d directories were listed", n)
	}
}

// TestLinks_WorkingDirs: a working directory may itself be a link, lie in another one, not
// exist yet, or be a whole volume.
func TestLinks_WorkingDirs(t *testing.T) {
	node := newNode(t, zoo())
	for _, err := range []error{
		node.Mkdir(`C:\real`),
		node.Symlink(`C:\operators`, `C:\real`),
		node.MountFolder(`C:\real\m`, data),
		node.MountFolder(kubelet+`\plugins\m`, data),
		node.MountFolder(`C:\elsewhere\m`, data),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := describe(t, inspector(t, node, kubelet+`\plugins`, kubelet, `C:\operators`, `C:\none`, `E:\`))
	const want = `link C:\operators\m to da7a0000-0000-0000-0000-000000000000: 
link K\plugins\m to da7a0000-0000-0000-0000-000000000000: 
problem links in E:\: it is a whole volume, which is not searched
`
	if diff := cmp.Diff(want, linkText(got)); diff != "" {
		t.Error(diff)
	}
}

// TestLinks_WholeVolume: a whole volume is not searched, by whatever path it is known, and the
// working directories in it are.
func TestLinks_WholeVolume(t *testing.T) {
	node := newNode(t, zoo())
	for _, err := range []error{
		node.MountFolder(kubelet+`\plugins\m`, data),
		node.MountFolder(`C:\elsewhere\m`, data),
		node.Symlink(`C:\all`, data),
		node.Symlink(strings.TrimSuffix(data, `\`)+`\some\link`, kubelet+`\none`),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := describe(t, inspector(t, node, `C:\`, kubelet, `C:\all`, `C:\all\some`))
	const want = `link C:\all\some\link to -: its target is gone: it does not exist (Windows error 2) K\none
link K\plugins\m to da7a0000-0000-0000-0000-000000000000: 
problem links in C:\, links in C:\all: it is a whole volume, which is not searched
`
	if diff := cmp.Diff(want, linkText(got)); diff != "" {
		t.Error(diff)
	}
}

// TestLinks_Unreadable: a link that a crash has left behind has a problem; a directory that cannot
// be listed hides nothing else.
func TestLinks_Unreadable(t *testing.T) {
	model := zoo()
	model.Files = append(model.Files, winsim.File{Path: kubelet + `\plugins\broken`, Tag: 0xA000000C, TagData: "00"})
	node := newNode(t, model)
	linked(t, node)
	for _, f := range []winsim.Fault{
		{Call: "ListDirectory", Object: `*\pods\1`, Error: 5},
		{Call: "ReparsePoint", Object: `*\globalmount`, Error: 32},
	} {
		inject(t, node, f)
	}
	got := linkText(describe(t, inspector(t, node)))
	for _, want := range []string{
		`link K\plugins\broken to -: ! it cannot be read: `,
		`problem the link K\plugins\kubernetes.io\csi\d\1\globalmount: `,
		`problem links in K\pods\1: `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestLinks_Bounds: pods write in what is searched, and must not keep anybody busy.
func TestLinks_Bounds(t *testing.T) {
	deep := kubelet + `\plugins` + strings.Repeat(`\d`, 100)
	t.Run("deep", func(t *testing.T) {
		node := newNode(t, zoo())
		prepare(t, node.MountFolder(deep+`\m`, data))
		node.ResetCalls()
		got := describe(t, inspector(t, node))
		if n := node.Calls()["ListDirectory"]; n > 20 || len(got.Links) != 0 {
			t.Errorf("%d directories were listed, %d links found", n, len(got.Links))
		}
	})
	t.Run("wide", func(t *testing.T) {
		node := newNode(t, zoo())
		for i := range 30_100 {
			prepare(t, node.WriteFile(fmt.Sprintf(`%s\plugins\%d`, kubelet, i), ""))
		}
		got := describe(t, inspector(t, node))
		if len(got.Problems) != 1 || got.Problems[0].Text != "links: only the first 30000 entries of "+kubelet+" were searched" {
			t.Errorf("problems: %q", got.Problems)
		}
	})
	t.Run("many links with long names", func(t *testing.T) {
		node := newNode(t, zoo())
		for i := range 6000 {
			prepare(t, node.Symlink(fmt.Sprintf(`%s\plugins\%s%d`, kubelet, strings.Repeat("x", 200), i), kubelet+`\none`))
		}
		got := describe(t, inspector(t, node))
		bytes := 0
		for _, l := range got.Links {
			bytes += len(l.Path) + len(l.Stale)
		}
		if len(got.Problems) != 1 || bytes > 1<<20+1000 || bytes < 1<<19 {
			t.Errorf("%d links with %d bytes, problems %q", len(got.Links), bytes, got.Problems)
		}
	})
	t.Run("many links that each fail in a way of their own", func(t *testing.T) {
		node := newNode(t, zoo())
		for i := range 500 {
			link := fmt.Sprintf(`%s\plugins\%s%d`, kubelet, strings.Repeat("\x7f", 250), i)
			prepare(t, node.Junction(link, data))
			inject(t, node, winsim.Fault{Call: "ReparsePoint", Object: link, Times: 1, Error: uint32(20_000 + i)})
		}
		got := describe(t, inspector(t, node))
		if last := got.Problems[len(got.Problems)-1]; len(got.Problems) > 450 || !strings.HasPrefix(last.Text, "links: only the first ") {
			t.Errorf("%d problems, the last is %s", len(got.Problems), last)
		}
	})
	t.Run("many unreadable directories", func(t *testing.T) {
		node := newNode(t, zoo())
		for i := range 100 {
			prepare(t, node.Mkdir(fmt.Sprintf(`%s\plugins\%d`, kubelet, i)))
		}
		inject(t, node, winsim.Fault{Call: "ListDirectory", Object: `*\plugins\*`, Error: 5})
		got := describe(t, inspector(t, node))
		if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Text, " and 88 more: ") {
			t.Errorf("problems: %q", got.Problems)
		}
	})
}
