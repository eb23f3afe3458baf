package api_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestRecord: what is kept is found by a path in any case, and by another host. What cannot be used is no record.
func TestRecord(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	host := node.Filesystem().(fsapi.Extended)
	const kubelet, staging = `C:\var\lib\kubelet`, `C:\var\lib\kubelet\plugins\driver\1\globalmount`
	files := kubelet + `\plugins\csi-proxy-mounter`
	get := func(path string) string {
		t.Helper()
		text, problem, err := node.Filesystem().(fsapi.Extended).Record(path)
		require.NoError(t, err)
		return text + problem
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	want(get(staging), "")
	require.NoError(t, host.SetRecord(staging, ""))
	for range 2 {
		require.NoError(t, host.SetRecord(staging, `{"is":"mine"}`))
	}
	want(get(strings.ToUpper(staging)), `{"is":"mine"}`)
	want(get(staging+"2"), "")

	_, file, _ := strings.Cut(node.Tree(files), "\n")
	file, content, _ := strings.Cut(file, " ")
	if !strings.Contains(content, "mine") {
		t.Errorf("the file has %s", content)
	}
	for text, problem := range map[string]string{
		`{`: "it is damaged",
		`{"version":2,"path":"C:\\","volume":{}}`:    "it is of another version of CSI Proxy",
		`{"version":1,"path":"C:\\x","volume":null}`: "it is of another path",
	} {
		require.NoError(t, node.WriteFile(file, text))
		want(get(staging), problem)
	}
	require.NoError(t, host.SetRecord(staging, ""))
	want(get(staging), "")
	if tree := node.Tree(files); strings.Contains(tree, ".json") {
		t.Errorf("there is %s", tree)
	}

	for path, text := range map[string]string{kubelet: `{}`, kubelet + `\plugins`: `{}`, `C:\pods\1`: `{}`} {
		if err := host.SetRecord(path, text); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, text := range []string{`{`, `"` + strings.Repeat("x", 9<<10) + `"`} {
		if err := host.SetRecord(staging, text); err == nil || !strings.Contains(err.Error(), "JSON") {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

// TestRecord_Old: a host that begins removes old records whose path is gone.
func TestRecord_Old(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	const gone, there, last = `C:\data\plugins\gone`, `C:\data\plugins\there`, `C:\data\plugins\last`
	require.NoError(t, node.Mkdir(there))
	kept := func(path string) bool {
		t.Helper()
		text, _, err := node.Filesystem().(fsapi.Extended).Record(path)
		require.NoError(t, err)
		return text != ""
	}
	for _, path := range []string{gone, there} {
		require.NoError(t, node.Filesystem().(fsapi.Extended).SetRecord(path, `{}`))
	}
	if !kept(gone) {
		t.Error("a new record is gone")
	}
	require.NoError(t, node.WriteFile(`C:\data\plugins\csi-proxy-mounter\other.json`, `{"version":1,"path":"C:\\nowhere","volume":{}}`))
	require.NoError(t, node.Sleep(t.Context(), 25*time.Hour))
	require.NoError(t, node.Filesystem().(fsapi.Extended).SetRecord(last, `{}`))
	if !node.Exists(`C:\data\plugins\csi-proxy-mounter\other.json`) {
		t.Error("a file of others is gone")
	}
	if kept(gone) || !kept(there) || !kept(last) {
		t.Errorf("gone %t, there %t, last %t", kept(gone), kept(there), kept(last))
	}
}
