package client_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta3"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta1"
	filesystemv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta2"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta2"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v2alpha1"
)

// groupVersion is one package below groups.
type groupVersion struct {
	group       string
	version     apiversion.Version
	newClient   func() (io.Closer, error)
	newWithPath func(path string) (io.Closer, error)
}

func (g groupVersion) String() string { return g.group + "/" + g.version.String() }

var groupVersions = []groupVersion{
	{diskv1.GroupName, diskv1.Version, opener(diskv1.NewClient), pathOpener(diskv1.NewClientWithPipePath)},
	{diskv1alpha1.GroupName, diskv1alpha1.Version, opener(diskv1alpha1.NewClient), pathOpener(diskv1alpha1.NewClientWithPipePath)},
	{diskv1beta1.GroupName, diskv1beta1.Version, opener(diskv1beta1.NewClient), pathOpener(diskv1beta1.NewClientWithPipePath)},
	{diskv1beta2.GroupName, diskv1beta2.Version, opener(diskv1beta2.NewClient), pathOpener(diskv1beta2.NewClientWithPipePath)},
	{diskv1beta3.GroupName, diskv1beta3.Version, opener(diskv1beta3.NewClient), pathOpener(diskv1beta3.NewClientWithPipePath)},
	{filesystemv1.GroupName, filesystemv1.Version, opener(filesystemv1.NewClient), pathOpener(filesystemv1.NewClientWithPipePath)},
	{filesystemv1alpha1.GroupName, filesystemv1alpha1.Version, opener(filesystemv1alpha1.NewClient), pathOpener(filesystemv1alpha1.NewClientWithPipePath)},
	{filesystemv1beta1.GroupName, filesystemv1beta1.Version, opener(filesystemv1beta1.NewClient), pathOpener(filesystemv1beta1.NewClientWithPipePath)},
	{filesystemv1beta2.GroupName, filesystemv1beta2.Version, opener(filesystemv1beta2.NewClient), pathOpener(filesystemv1beta2.NewClientWithPipePath)},
	{filesystemv2alpha1.GroupName, filesystemv2alpha1.Version, opener(filesystemv2alpha1.NewClient), pathOpener(filesystemv2alpha1.NewClientWithPipePath)},
	{iscsiv1alpha1.GroupName, iscsiv1alpha1.Version, opener(iscsiv1alpha1.NewClient), pathOpener(iscsiv1alpha1.NewClientWithPipePath)},
	{iscsiv1alpha2.GroupName, iscsiv1alpha2.Version, opener(iscsiv1alpha2.NewClient), pathOpener(iscsiv1alpha2.NewClientWithPipePath)},
	{smbv1.GroupName, smbv1.Version, opener(smbv1.NewClient), pathOpener(smbv1.NewClientWithPipePath)},
	{smbv1alpha1.GroupName, smbv1alpha1.Version, opener(smbv1alpha1.NewClient), pathOpener(smbv1alpha1.NewClientWithPipePath)},
	{smbv1beta1.GroupName, smbv1beta1.Version, opener(smbv1beta1.NewClient), pathOpener(smbv1beta1.NewClientWithPipePath)},
	{smbv1beta2.GroupName, smbv1beta2.Version, opener(smbv1beta2.NewClient), pathOpener(smbv1beta2.NewClientWithPipePath)},
	{systemv1alpha1.GroupName, systemv1alpha1.Version, opener(systemv1alpha1.NewClient), pathOpener(systemv1alpha1.NewClientWithPipePath)},
	{volumev1.GroupName, volumev1.Version, opener(volumev1.NewClient), pathOpener(volumev1.NewClientWithPipePath)},
	{volumev1alpha1.GroupName, volumev1alpha1.Version, opener(volumev1alpha1.NewClient), pathOpener(volumev1alpha1.NewClientWithPipePath)},
	{volumev1beta1.GroupName, volumev1beta1.Version, opener(volumev1beta1.NewClient), pathOpener(volumev1beta1.NewClientWithPipePath)},
	{volumev1beta2.GroupName, volumev1beta2.Version, opener(volumev1beta2.NewClient), pathOpener(volumev1beta2.NewClientWithPipePath)},
	{volumev1beta3.GroupName, volumev1beta3.Version, opener(volumev1beta3.NewClient), pathOpener(volumev1beta3.NewClientWithPipePath)},
	{volumev2alpha1.GroupName, volumev2alpha1.Version, opener(volumev2alpha1.NewClient), pathOpener(volumev2alpha1.NewClientWithPipePath)},
}

// opener and pathOpener give the constructors of all packages one type.
func opener[C io.Closer](newClient func() (C, error)) func() (io.Closer, error) {
	return func() (io.Closer, error) { return newClient() }
}

func pathOpener[C io.Closer](newClient func(string) (C, error)) func(string) (io.Closer, error) {
	return func(path string) (io.Closer, error) { return newClient(path) }
}

// packages lists the directories two levels below root, as <group>/<version>.
func packages(t *testing.T, root string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "*", "*", "*.go"))
	must(t, err)
	var names []string
	for _, path := range paths {
		name, err := filepath.Rel(root, filepath.Dir(path))
		must(t, err)
		names = append(names, filepath.ToSlash(name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestGroups_OnePackagePerAPI(t *testing.T) {
	var tested []string
	for _, g := range groupVersions {
		tested = append(tested, g.String())
	}
	slices.Sort(tested)
	if apis := packages(t, "api"); !slices.Equal(apis, tested) {
		t.Errorf("below api there are\n%q, the table above has\n%q", apis, tested)
	}
	if clients := packages(t, "groups"); !slices.Equal(clients, tested) {
		t.Errorf("below groups there are\n%q, the table above has\n%q", clients, tested)
	}
}

func TestGroups_NewClient_NamesItsEndpoint(t *testing.T) {
	t.Setenv("CSI_PROXY_SOCKET_DIR", t.TempDir())
	for _, g := range groupVersions {
		_, err := g.newClient()
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want an error that is fs.ErrNotExist", g, err)
		}
		wantContains(t, err, client.PipePath(g.group, g.version))
	}
}

// TestGroups_Calls makes every call of every client and looks where it arrives.
func TestGroups_Calls(t *testing.T) {
	ctx, path := testContext(t), newPath(t)
	serve(t, listen(t, path), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		return status.Error(codes.Unimplemented, method)
	}))
	calls := 0
	for _, g := range groupVersions {
		c, err := g.newWithPath(path)
		if err != nil {
			t.Fatalf("%s: %v", g, err)
		}
		// Full method names are /<version>.<Group>/<Method>.
		service := fmt.Sprintf("/%s.%s/", g.version, strings.ToUpper(g.group[:1])+g.group[1:])
		for i := range reflect.TypeOf(c).NumMethod() {
			method := reflect.TypeOf(c).Method(i)
			if method.Name == "Close" {
				continue
			}
			calls++
			results := reflect.ValueOf(c).Method(i).Call([]reflect.Value{
				reflect.ValueOf(ctx), reflect.New(method.Type.In(2).Elem()),
			})
			err, _ := reflect.TypeAssert[error](results[1])
			if got := status.Convert(err).Message(); got != service+method.Name {
				t.Errorf("%s: %s arrives as %q, want %q", g, method.Name, got, service+method.Name)
			}
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("%s: close: %v", g, err)
			}
		}
	}
	if calls != 139 {
		t.Errorf("made %d calls, the published APIs have 139", calls)
	}
}

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestGroups_Endpoints pins the names that drivers and servers in the field use.
func TestGroups_Endpoints(t *testing.T) {
	var b strings.Builder
	for _, g := range groupVersions {
		for _, goos := range []string{"windows", "linux"} {
			fmt.Fprintln(&b, client.Endpoint(goos, "<dir>", g.group, g.version))
		}
	}
	golden := filepath.Join("testdata", "endpoints.txt")
	if *update {
		must(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if got := b.String(); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
