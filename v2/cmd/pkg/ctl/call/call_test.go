package call

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestVersions compares each version with the newest one in a golden file: names of methods
// and fields, and what is missing. Names that the tables lack show there.
func TestVersions(t *testing.T) {
	var b strings.Builder
	for _, name := range endpoint.All() {
		newest := serviceOf(endpoint.Name{Group: name.Group, Version: endpoint.Newest(name.Group)})
		if newest == nil {
			t.Fatalf("the newest version of %s is not linked", name.Group)
		}
		for i := range newest.Methods().Len() {
			method := newest.Methods().Get(i)
			found := lookUp(name, string(method.Name()))
			if found == nil {
				fmt.Fprintf(&b, "%s %s: absent\n", name, method.Name())
				continue
			}
			fmt.Fprintf(&b, "%s %s: %s", name, method.Name(), found.Name())
			for _, side := range []struct {
				newest, theirs protoreflect.MessageDescriptor
			}{
				{method.Input(), found.Input()}, {method.Output(), found.Output()},
			} {
				for j := range side.newest.Fields().Len() {
					f := side.newest.Fields().Get(j)
					older := field(side.theirs, f.Name())
					switch {
					case older == nil:
						fmt.Fprintf(&b, " -%s", f.Name())
					case older.Name() != f.Name():
						fmt.Fprintf(&b, " %s=%s", f.Name(), older.Name())
					}
				}
			}
			b.WriteByte('\n')
		}
	}
	const file = "testdata/versions.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s\nrun with -update to rewrite it", b.String(), want)
	}
}

// TestToOlder_Context: the first versions need the kind of directory.
func TestToOlder_Context(t *testing.T) {
	name := endpoint.Name{Group: "filesystem", Version: "v1beta1"}
	for path, want := range map[string]filesystemv1beta1.PathContext{
		`C:\var\lib\kubelet\pods\p\v`:    filesystemv1beta1.PathContext_POD,
		`C:\var\lib\kubelet\Pods\p\v`:    filesystemv1beta1.PathContext_POD,
		`C:\var\lib\kubelet\plugins\p\v`: filesystemv1beta1.PathContext_PLUGIN,
	} {
		var older filesystemv1beta1.MkdirRequest
		require.NoError(t, toOlder(name, (&filesystemv2alpha1.MkdirRequest{Path: path}).ProtoReflect(), older.ProtoReflect()))
		if older.GetPath() != path || older.GetContext() != want {
			t.Errorf("%s: got %v, want %s", path, &older, want)
		}
	}
}
