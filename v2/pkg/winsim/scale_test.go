package winsim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// deep is as long as a path can be: 16,000 names of one letter.
var deep = strings.Repeat(`x\`, 15999) + "x"

// TestDeepPath: the longest path works, and a longer one is too long.
func TestDeepPath(t *testing.T) {
	node, ctx := newNode(t, winsim.Default()), t.Context()
	mustAll(t, node.Mkdir(`C:\`+deep))
	for _, path := range []win.Path{win.Following(`C:\` + deep), {Base: `C:\`, Rest: deep}} {
		if info, err := node.FileInfo(ctx, path); err != nil || !info.Directory {
			t.Errorf("%d characters: %+v, %v", len(path.String()), info, err)
		}
	}
	if _, err := node.FileInfo(ctx, win.Path{Base: `C:\`, Rest: deep + `\` + deep}); !bare(err, winerr.FilenameExcedRange) {
		t.Errorf("a path of twice the length: %v, want code 206", err)
	}
	mustAll(t, node.RemoveAll(`C:\x`))
}

// TestShortNames_Many: every entry of a large directory has a short name of its own.
func TestShortNames_Many(t *testing.T) {
	const count = 5000
	node := newNode(t, winsim.Default())
	for i := range count {
		mustAll(t, node.Mkdir(fmt.Sprintf(`C:\many\persistent-volume-claim-%06d`, i)))
	}
	seen := map[string]bool{}
	for _, name := range list(t, open(t, node, `C:\`), "many") {
		short, err := node.ShortName(`C:\many\` + name)
		if err != nil || short == "" || len(short) > 8 || seen[short] {
			t.Fatalf("%s: %q, %v, the same as of another one: %v", name, short, err, seen[short])
		}
		seen[short] = true
	}
	if len(seen) != count {
		t.Errorf("%d short names, want %d", len(seen), count)
	}
}
