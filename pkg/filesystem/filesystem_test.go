package filesystem_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// fakeHost is a host as drivers write it for their tests: the published methods and
// nothing else. It notes its calls.
type fakeHost struct {
	calls  []string
	answer bool
	err    error
}

func (f *fakeHost) note(format string, args ...any) {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f *fakeHost) PathExists(path string) (bool, error) {
	f.note("PathExists %s", path)
	return f.answer, f.err
}

func (f *fakeHost) PathValid(path string) (bool, error) {
	f.note("PathValid %s", path)
	return f.answer, f.err
}

func (f *fakeHost) Mkdir(path string) error {
	f.note("Mkdir %s", path)
	return f.err
}

func (f *fakeHost) Rmdir(path string, force bool) error {
	f.note("Rmdir %s %v", path, force)
	return f.err
}

func (f *fakeHost) RmdirContents(path string) error {
	f.note("RmdirContents %s", path)
	return f.err
}

func (f *fakeHost) CreateSymlink(oldname, newname string) error {
	f.note("CreateSymlink %s %s", oldname, newname)
	return f.err
}

func (f *fakeHost) IsSymlink(path string) (bool, error) {
	f.note("IsSymlink %s", path)
	return f.answer, f.err
}

var _ fsapi.HostAPI = (*fakeHost)(nil)

// boundHost is a host like ours, which can be given the caller's context. Unbound it
// must not be used.
type boundHost struct {
	fsapi.HostAPI
	inner *fakeHost
	seen  *[]context.Context
}

func (b boundHost) WithContext(ctx context.Context) fsapi.HostAPI {
	*b.seen = append(*b.seen, ctx)
	return b.inner
}

func newFilesystem(t *testing.T, host fsapi.HostAPI) *filesystem.Filesystem {
	t.Helper()
	files, err := filesystem.New(host)
	require.NoError(t, err)
	return files
}

// method is one of the group's calls with what the host must see of it.
type method struct {
	name string
	call func(ctx context.Context, files filesystem.Interface, path string) (answer any, err error)
	want func(clean string) string
	// fails is operation and object of its errors.
	fails func(path string) string
	// missing calls it without a request.
	missing func(ctx context.Context, files filesystem.Interface) error
}

const otherPath = `C:\elsewhere`

var methods = []method{
	{
		name: "PathExists",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
			return response != nil && response.Exists, err
		},
		want:    func(clean string) string { return "PathExists " + clean },
		fails:   func(path string) string { return "look up " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error { _, err := f.PathExists(ctx, nil); return err },
	},
	{
		name: "PathValid",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.PathValid(ctx, &filesystem.PathValidRequest{Path: path})
			return response != nil && response.Valid, err
		},
		want:    func(clean string) string { return "PathValid " + clean },
		fails:   func(path string) string { return "look up " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error { _, err := f.PathValid(ctx, nil); return err },
	},
	{
		name: "Mkdir",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path})
			return response != nil, err
		},
		want:    func(clean string) string { return "Mkdir " + clean },
		fails:   func(path string) string { return "create directory " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error { _, err := f.Mkdir(ctx, nil); return err },
	},
	{
		name: "Rmdir",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path})
			return response != nil, err
		},
		want:    func(clean string) string { return "Rmdir " + clean + " false" },
		fails:   func(path string) string { return "remove " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error { _, err := f.Rmdir(ctx, nil); return err },
	},
	{
		name: "Rmdir with force",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path, Force: true})
			return response != nil, err
		},
		want:    func(clean string) string { return "Rmdir " + clean + " true" },
		fails:   func(path string) string { return "remove " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error { _, err := f.Rmdir(ctx, nil); return err },
	},
	{
		name: "RmdirContents",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: path})
			return response != nil, err
		},
		want:  func(clean string) string { return "RmdirContents " + clean },
		fails: func(path string) string { return "remove contents of " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error {
			_, err := f.RmdirContents(ctx, nil)
			return err
		},
	},
	{
		name: "CreateSymlink to",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: path, TargetPath: otherPath})
			return response != nil, err
		},
		want:  func(clean string) string { return "CreateSymlink " + clean + " " + otherPath },
		fails: func(_ string) string { return "create link " + otherPath },
		missing: func(ctx context.Context, f filesystem.Interface) error {
			_, err := f.CreateSymlink(ctx, nil)
			return err
		},
	},
	{
		name: "CreateSymlink at",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: otherPath, TargetPath: path})
			return response != nil, err
		},
		want:  func(clean string) string { return "CreateSymlink " + otherPath + " " + clean },
		fails: func(path string) string { return "create link " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error {
			_, err := f.CreateSymlink(ctx, nil)
			return err
		},
	},
	{
		name: "IsSymlink",
		call: func(ctx context.Context, files filesystem.Interface, path string) (any, error) {
			response, err := files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: path})
			return response != nil && response.IsSymlink, err
		},
		want:    func(clean string) string { return "IsSymlink " + clean },
		fails:   func(path string) string { return "inspect link " + path },
		missing: func(ctx context.Context, f filesystem.Interface) error { _, err := f.IsSymlink(ctx, nil); return err },
	},
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
			host.calls = nil
			answer, err := m.call(t.Context(), files, path)
			if err != nil || answer != true {
				t.Errorf("%s: %v, %v, want the host's answer", path, answer, err)
			}
			if diff := cmp.Diff([]string{m.want(clean)}, host.calls); diff != "" {
				t.Errorf("%s: the host saw (-want +got):\n%s", path, diff)
			}
		}
	})
}

func TestFilesystem_MalformedPathsDoNotReachTheHost(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem) {
		t.Helper()
		for _, path := range []string{
			``, `relative`, `\rooted`, `C:`, `C:relative`, `C:/x`, `/x`, `C:\a\..\b`, `C:\a\.\b`, `C:\a\\..\\b`, `C:\\?\x`, `C:\a.`, `C:\a `,
			`C:\a:stream`, `C:\NUL`, `C:\PROGRA~1`, `C:\a|b`, "C:\\a\x00b", "C:\\a\xff", `\\?\C:\x`, `\\.\PhysicalDrive0`,
			`C:\` + strings.Repeat("x", 256),
		} {
			if m.name == "PathValid" && path == `C:` {
				continue // its drive
			}
			_, err := m.call(t.Context(), files, path)
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%.40q: %v, want an error that is %q", path, err, fs.ErrInvalid)
			}
			if m.name != "PathValid" && filesystem.ValidatePathWindows(path) == nil {
				t.Errorf("%.40q: ValidatePathWindows accepts what %s refuses", path, m.name)
			}
		}
		if len(host.calls) != 0 {
			t.Errorf("the host was asked: %q", host.calls)
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
			if want := []string{"PathValid " + path}; err != nil || !slices.Equal(host.calls, want) {
				t.Errorf("%v, the host saw %q, want %q", err, host.calls, want)
			}
		} else if !errors.Is(err, fs.ErrInvalid) || len(host.calls) != 0 {
			t.Errorf("%v, the host saw %q, want an error that is %q and nothing", err, host.calls, fs.ErrInvalid)
		}
	})
}

func TestFilesystem_MissingRequest(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem) {
		t.Helper()
		if err := m.missing(t.Context(), files); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%v, want an error that is %q", err, fs.ErrInvalid)
		}
		if len(host.calls) != 0 {
			t.Errorf("the host was asked: %q", host.calls)
		}
	})
}

func TestFilesystem_CancelledCallsDoNotReachTheHost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-expired.Done()
	eachMethod(t, func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem) {
		t.Helper()
		if _, err := m.call(ctx, files, `C:\x`); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v, want an error that is %q", err, context.Canceled)
		}
		if _, err := m.call(expired, files, `C:\x`); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("too late: %v, want an error that is %q", err, context.DeadlineExceeded)
		}
		if len(host.calls) != 0 {
			t.Errorf("the host was asked: %q", host.calls)
		}
	})
}

// TestFilesystem_HostErrors: a foreign host's error gets operation and path and keeps its class;
// one that has them already stays as it is.
func TestFilesystem_HostErrors(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method, host *fakeHost, files *filesystem.Filesystem) {
		t.Helper()
		for _, cause := range []error{errors.New("boom"), winerr.AccessDenied, context.DeadlineExceeded} {
			host.err = cause
			answer, err := m.call(t.Context(), files, `C:\x`)
			if _, ok := any(err).(*winerr.Error); !ok || answer != false || !errors.Is(err, cause) || winerr.KindOf(err) != winerr.KindOf(cause) {
				t.Errorf("the host fails with %v: %v, %v, want no response and a *winerr.Error of that cause", cause, answer, err)
			}
			if want := m.fails(`C:\x`) + ": " + cause.Error(); err.Error() != want {
				t.Errorf("the host fails with %v: %q, want %q", cause, err, want)
			}
		}
		host.err = winerr.New(winerr.InUse, "shear", "the sheep", "it is asleep")
		if _, err := m.call(t.Context(), files, `C:\x`); any(err) != any(host.err) {
			t.Errorf("%v, want the host's own *winerr.Error", err)
		}
	})
}

// TestFilesystem_HostGetsTheCallersContext: a host that can be bound is bound to the
// context of each call, and only that binding is used.
func TestFilesystem_HostGetsTheCallersContext(t *testing.T) {
	type key struct{}
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			var seen []context.Context
			inner := &fakeHost{answer: true}
			files := newFilesystem(t, boundHost{inner: inner, seen: &seen})
			ctx := context.WithValue(t.Context(), key{}, m.name)
			if answer, err := m.call(ctx, files, `C:\x`); err != nil || answer != true {
				t.Errorf("%v, %v", answer, err)
			}
			if len(seen) != 1 || seen[0] != ctx || len(inner.calls) != 1 {
				t.Errorf("bound to %v, with the calls %q, want the caller's context and one call", seen, inner.calls)
			}
		})
	}
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
