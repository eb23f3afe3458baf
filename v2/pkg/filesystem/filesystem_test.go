package filesystem_test

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// fakeHost is a host as drivers write it for their tests: the published methods and
// nothing else. It notes its calls.
type fakeHost struct {
	grouptest.Recorder
	answer bool
}

func (f *fakeHost) PathExists(path string) (bool, error) { return f.answer, f.Note("PathExists", path) }

func (f *fakeHost) PathValid(path string) (bool, error) { return f.answer, f.Note("PathValid", path) }

func (f *fakeHost) Mkdir(path string) error { return f.Note("Mkdir", path) }

func (f *fakeHost) Rmdir(path string, force bool) error { return f.Note("Rmdir", path, force) }

func (f *fakeHost) RmdirContents(path string) error { return f.Note("RmdirContents", path) }

func (f *fakeHost) CreateSymlink(oldname, newname string) error {
	return f.Note("CreateSymlink", oldname, newname)
}

func (f *fakeHost) IsSymlink(path string) (bool, error) { return f.answer, f.Note("IsSymlink", path) }

var _ fsapi.HostAPI = (*fakeHost)(nil)

func newFilesystem(t *testing.T, host fsapi.HostAPI) *filesystem.Filesystem {
	t.Helper()
	files, err := filesystem.New(host)
	require.NoError(t, err)
	return files
}

// method is one of the group's calls, made about a path.
type method struct {
	name    string
	call    func(ctx context.Context, files filesystem.Interface, path string) (answer any, err error)
	host    string // what the host must see of it, with PATH for the clean path
	failure string // operation and object of its errors
}

func (m method) want(clean string) string { return strings.ReplaceAll(m.host, "PATH", clean) }

func (m method) fails(path string) string { return strings.ReplaceAll(m.failure, "PATH", path) }

// about makes a method. Its answer is that of the host, or whether there is a response that says no more.
func about[In, Out any](name string, m func(filesystem.Interface, context.Context, *In) (*Out, error), request func(path string) In, host, failure string) method {
	return method{name: name, host: host, failure: failure, call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
		in := request(path)
		response, err := m(files, ctx, &in)
		if response != nil && reflect.TypeFor[Out]().NumField() > 0 {
			return reflect.ValueOf(response).Elem().Field(0).Bool(), err
		}
		return response != nil, err
	}}
}

const otherPath = `C:\elsewhere`

var methods = []method{
	about("PathExists", filesystem.Interface.PathExists, func(path string) filesystem.PathExistsRequest { return filesystem.PathExistsRequest{Path: path} }, "PathExists PATH", "look up PATH"),
	about("PathValid", filesystem.Interface.PathValid, func(path string) filesystem.PathValidRequest { return filesystem.PathValidRequest{Path: path} }, "PathValid PATH", "look up PATH"),
	about("Mkdir", filesystem.Interface.Mkdir, func(path string) filesystem.MkdirRequest { return filesystem.MkdirRequest{Path: path} }, "Mkdir PATH", "create directory PATH"),
	about("Rmdir", filesystem.Interface.Rmdir, func(path string) filesystem.RmdirRequest { return filesystem.RmdirRequest{Path: path} }, "Rmdir PATH false", "remove PATH"),
	about("Rmdir with force", filesystem.Interface.Rmdir, func(path string) filesystem.RmdirRequest { return filesystem.RmdirRequest{Path: path, Force: true} }, "Rmdir PATH true", "remove PATH"),
	about("RmdirContents", filesystem.Interface.RmdirContents, func(path string) filesystem.RmdirContentsRequest { return filesystem.RmdirContentsRequest{Path: path} }, "RmdirContents PATH", "remove contents of PATH"),
	about("CreateSymlink to", filesystem.Interface.CreateSymlink, func(path string) filesystem.CreateSymlinkRequest {
		return filesystem.CreateSymlinkRequest{SourcePath: path, TargetPath: otherPath}
	}, "CreateSymlink PATH "+otherPath, "create link "+otherPath),
	about("CreateSymlink at", filesystem.Interface.CreateSymlink, func(path string) filesystem.CreateSymlinkRequest {
		return filesystem.CreateSymlinkRequest{SourcePath: otherPath, TargetPath: path}
	}, "CreateSymlink "+otherPath+" PATH", "create link PATH"),
	about("IsSymlink", filesystem.Interface.IsSymlink, func(path string) filesystem.IsSymlinkRequest { return filesystem.IsSymlinkRequest{Path: path} }, "IsSymlink PATH", "inspect link PATH"),
}

// eachMethod runs a test for every method on a host of its own.
func eachMethod(t *testing.T, test func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem)) {
	t.Helper()
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			host := &fakeHost{answer: true}
			test(t, m, host, newFilesystem(t, host))
		})
	}
}

func TestFilesystem_HostSeesCleanPaths(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem) {
		t.Helper()
		for path, clean := range map[string]string{
			`C:\var\lib`:   `C:\var\lib`,
			`c:\Var\Lib\`:  `C:\Var\Lib`,
			`C:\\a\\\b\\`:  `C:\a\b`,
			`d:\`:          `D:\`,
			`C:\a b\c.d~e`: `C:\a b\c.d~e`,
		} {
			host.Calls = nil
			answer, err := m.call(t.Context(), files, path)
			if err != nil || answer != true {
				t.Errorf("%s: %v, %v, want the host's answer", path, answer, err)
			}
			if diff := cmp.Diff([]string{m.want(clean)}, host.Calls); diff != "" {
				t.Errorf("%s: the host saw (-want +got):\n%s", path, diff)
			}
		}
	})
}

// TestFilesystem_NetworkPaths: only PathValid takes them, and as they are.
func TestFilesystem_NetworkPaths(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem) {
		t.Helper()
		const path = `\\server\share\dir`
		_, err := m.call(t.Context(), files, path)
		if m.name == "PathValid" {
			if want := []string{"PathValid " + path}; err != nil || !slices.Equal(host.Calls, want) {
				t.Errorf("%v, the host saw %q, want %q", err, host.Calls, want)
			}
		} else if !errors.Is(err, fs.ErrInvalid) || len(host.Calls) != 0 {
			t.Errorf("%v, the host saw %q, want an error that is %q and nothing", err, host.Calls, fs.ErrInvalid)
		}
	})
}

func TestFilesystem_EveryMethod(t *testing.T) {
	grouptest.EveryMethod[filesystem.Extended](t, newFilesystem(t, struct{ fsapi.HostAPI }{}))
}

// TestFilesystem_HostErrors: a foreign host's error gets operation and path and keeps its class;
// one that has them already stays as it is.
func TestFilesystem_HostErrors(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem) {
		t.Helper()
		for _, cause := range []error{errors.New("boom"), winerr.AccessDenied, context.DeadlineExceeded} {
			host.Err = cause
			answer, err := m.call(t.Context(), files, `C:\x`)
			if _, ok := any(err).(*winerr.Error); !ok || answer != false || !errors.Is(err, cause) || winerr.KindOf(err) != winerr.KindOf(cause) {
				t.Errorf("the host fails with %v: %v, %v, want no response and a *winerr.Error of that cause", cause, answer, err)
			}
			if want := m.fails(`C:\x`) + ": " + cause.Error(); err.Error() != want {
				t.Errorf("the host fails with %v: %q, want %q", cause, err, want)
			}
		}
		host.Err = winerr.New(winerr.InUse, "shear", "the sheep", "it is asleep")
		if _, err := m.call(t.Context(), files, `C:\x`); any(err) != any(host.Err) {
			t.Errorf("%v, want the host's own *winerr.Error", err)
		}
	})
}

func TestNew_NilHost(t *testing.T) {
	files, err := filesystem.New(nil)
	if files != nil || !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("New(nil) = %v, %v, want an error that is %q", files, err, fs.ErrInvalid)
	}
}

func TestWorkingDirs_Refuses(t *testing.T) {
	for name, option := range map[string]filesystem.Option{
		"none":         filesystem.WorkingDirs(),
		"relative":     filesystem.WorkingDirs(`kubelet`),
		"foreign host": filesystem.WorkingDirs(`C:\var\lib\kubelet`),
	} {
		if _, err := filesystem.New(&fakeHost{}, option); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

func TestValidatePathWindows(t *testing.T) {
	for _, path := range []string{`C:\`, `c:\var\lib\kubelet\`, `D:\` + strings.Repeat(`dir\`, 100)} {
		require.NoError(t, filesystem.ValidatePathWindows(path))
	}
	err := filesystem.ValidatePathWindows(`C:\var\NUL`)
	if !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), `"C:\var\NUL"`) || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("%v, want an error that names the path and the rule", err)
	}
}
