package smb_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	fs "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// fakeHost notes its calls and fails those whose first word is in fail.
type fakeHost struct {
	mapped bool
	fail   map[string]error
	calls  []string
}

func (f *fakeHost) note(call string, args ...any) error {
	f.calls = append(f.calls, call+" "+strings.TrimSpace(fmt.Sprintln(args...)))
	return f.fail[call]
}

func (f *fakeHost) IsSMBMapped(remote string) (bool, error) {
	return f.mapped, f.note("mapped?", remote)
}

func (f *fakeHost) NewSMBLink(remote, local string) error { return f.note("link", remote, local) }

func (f *fakeHost) NewSMBGlobalMapping(remote, user, password string) error {
	return f.note("map", remote, user, password)
}

func (f *fakeHost) RemoveSMBGlobalMapping(remote string) error { return f.note("unmap", remote) }

// fakeFiles answers PathValid only; the other methods are not called.
type fakeFiles struct {
	fs.Interface
	valid func(ctx context.Context, path string) (bool, error)
}

func (f fakeFiles) PathValid(ctx context.Context, request *fs.PathValidRequest) (*fs.PathValidResponse, error) {
	valid, err := f.valid(ctx, request.Path)
	if err != nil {
		return nil, err
	}
	return &fs.PathValidResponse{Valid: valid}, nil
}

func answering(valid bool, err error) fakeFiles {
	return fakeFiles{valid: func(context.Context, string) (bool, error) { return valid, err }}
}

func newSMB(t *testing.T, host *fakeHost, files fs.Interface) *smb.SMB {
	t.Helper()
	s, err := smb.New(host, files)
	require.NoError(t, err)
	return s
}

func TestNew_NilArguments(t *testing.T) {
	if _, err := smb.New(nil, answering(true, nil)); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("without a host: %v, want an invalid-argument error", err)
	}
	if _, err := smb.New(&fakeHost{}, nil); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("without a filesystem client: %v, want an invalid-argument error", err)
	}
}

func TestSMB_NewSMBGlobalMapping(t *testing.T) {
	const remote, local = `\\Server\Share\Sub`, `C:\var\lib\kubelet\plugins\x`
	tests := []struct {
		name   string
		mapped bool
		files  fakeFiles
		remote string
		local  string
		want   []string
	}{
		{
			name: "new share", remote: remote, local: local,
			want: []string{`mapped? \\server\share`, `map \\server\share DOM\me xyzzy`, `link \\Server\Share\Sub\ ` + local},
		},
		{
			name: "no link wanted", remote: remote,
			want: []string{`mapped? \\server\share`, `map \\server\share DOM\me xyzzy`},
		},
		{
			name: "slashes", remote: "//server/share/a/", local: local,
			want: []string{`mapped? \\server\share`, `map \\server\share DOM\me xyzzy`, `link \\server\share\a\ ` + local},
		},
		{
			name: "mapped share that answers", mapped: true, files: answering(true, nil), remote: remote, local: local,
			want: []string{`mapped? \\server\share`, `link \\Server\Share\Sub\ ` + local},
		},
		{
			name: "mapped share that is dead", mapped: true, files: answering(false, nil), remote: remote,
			want: []string{`mapped? \\server\share`, `unmap \\server\share`, `map \\server\share DOM\me xyzzy`},
		},
		{
			name: "mapped share that fails", mapped: true, files: answering(false, winerr.NetnameDeleted), remote: remote,
			want: []string{`mapped? \\server\share`, `unmap \\server\share`, `map \\server\share DOM\me xyzzy`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			host := &fakeHost{mapped: tt.mapped}
			_, err := newSMB(t, host, tt.files).NewSMBGlobalMapping(t.Context(), &smb.NewSMBGlobalMappingRequest{
				RemotePath: tt.remote, LocalPath: tt.local, Username: `DOM\me`, Password: "xyzzy",
			})
			require.NoError(t, err)
			if !slices.Equal(host.calls, tt.want) {
				t.Errorf("host saw\n%q, want\n%q", host.calls, tt.want)
			}
		})
	}
}

// When a caller leaves while the share is opened, the pods that use the mapping keep it.
func TestSMB_NewSMBGlobalMapping_CancelledWhileLooking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	files := fakeFiles{valid: func(ctx context.Context, _ string) (bool, error) {
		cancel()
		return false, ctx.Err()
	}}
	host := &fakeHost{mapped: true}
	_, err := newSMB(t, host, files).NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{RemotePath: `\\server\share`})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
	if want := []string{`mapped? \\server\share`}; !slices.Equal(host.calls, want) {
		t.Errorf("host saw %q, want %q", host.calls, want)
	}
}

func TestSMB_HostFails(t *testing.T) {
	for _, step := range []string{"mapped?", "unmap", "map", "link"} {
		for _, cause := range []error{winerr.AccessDenied, context.DeadlineExceeded, errors.New("lightning struck")} {
			host := &fakeHost{mapped: true, fail: map[string]error{step: cause}}
			_, err := newSMB(t, host, answering(false, nil)).NewSMBGlobalMapping(t.Context(), &smb.NewSMBGlobalMappingRequest{
				RemotePath: `\\server\share`, LocalPath: `C:\x`, Username: "me", Password: "xyzzy",
			})
			if !errors.Is(err, cause) || winerr.KindOf(err) != winerr.KindOf(cause) {
				t.Errorf("%s fails with %v: got %v of kind %v, want kind %v", step, cause, err, winerr.KindOf(err), winerr.KindOf(cause))
			}
			if err != nil && (!strings.Contains(err.Error(), `\\server\share`) || strings.Contains(err.Error(), "xyzzy")) {
				t.Errorf("%s fails: err = %q, want it to name the share and not the password", step, err)
			}
			if last := host.calls[len(host.calls)-1]; !strings.HasPrefix(last, step) {
				t.Errorf("%s fails, yet the host saw %q after it", step, last)
			}
		}
	}
	host := &fakeHost{fail: map[string]error{"unmap": winerr.AccessDenied}}
	_, err := newSMB(t, host, fakeFiles{}).RemoveSMBGlobalMapping(t.Context(), &smb.RemoveSMBGlobalMappingRequest{RemotePath: `\\server\share`})
	if !errors.Is(err, winerr.Denied) {
		t.Errorf("remove: %v, want kind %v", err, winerr.Denied)
	}
}

func TestSMB_RemoveSMBGlobalMapping(t *testing.T) {
	host := &fakeHost{}
	s := newSMB(t, host, fakeFiles{})
	for range 2 {
		if _, err := s.RemoveSMBGlobalMapping(t.Context(), &smb.RemoveSMBGlobalMappingRequest{RemotePath: `\\Server\Share\Sub\`}); err != nil {
			t.Error(err)
		}
	}
	if want := []string{`unmap \\server\share`, `unmap \\server\share`}; !slices.Equal(host.calls, want) {
		t.Errorf("host saw %q, want %q", host.calls, want)
	}
}

func TestSMB_BadRequest(t *testing.T) {
	host := &fakeHost{}
	s := newSMB(t, host, fakeFiles{})
	for name, account := range map[string][2]string{
		"a long user":              {strings.Repeat("u", 10<<20), ""},
		"a user of many bytes":     {strings.Repeat("\u20ac", 514), ""},
		"a user with a line break": {"a\r\nb", ""},
		"a user that is not UTF-8": {"\xff", ""},
		"a long password":          {"u", strings.Repeat("p", 10<<20)},
		"a password with NUL":      {"u", "xyzzy\x00"},
		"bytes for a password":     {"u", "xyzzy\xff"},
	} {
		_, err := s.NewSMBGlobalMapping(t.Context(), &smb.NewSMBGlobalMappingRequest{RemotePath: `\\server\share`, Username: account[0], Password: account[1]})
		if !errors.Is(err, winerr.Invalid) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "xyzzy") {
			t.Errorf("%s: %.200v, want a short error of kind %v", name, err, winerr.Invalid)
		}
	}
	grouptest.EveryMethod[smb.Interface](t, s)
	if len(host.calls) != 0 {
		t.Errorf("host saw %q, want nothing", host.calls)
	}
}

// TestOptions_ForeignHost: hosts of drivers cannot be limited, and say so.
func TestOptions_ForeignHost(t *testing.T) {
	for name, option := range map[string]smb.Option{"WorkingDirs": smb.WorkingDirs(`C:\x`), "RequirePrivacy": smb.RequirePrivacy(false), "RefuseOtherUser": smb.RefuseOtherUser(true)} {
		if _, err := smb.New(&fakeHost{}, fakeFiles{}, option); !errors.Is(err, iofs.ErrInvalid) || !strings.Contains(err.Error(), "fakeHost") {
			t.Errorf("%s: %v, want an error that names the host", name, err)
		}
	}
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	if _, err := smb.New(node.SMB(), fakeFiles{}, smb.WorkingDirs("x")); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("a relative working directory: %v", err)
	}
}

// TestRequest_Privacy: a request decides for its own mapping.
func TestRequest_Privacy(t *testing.T) {
	for _, c := range []struct {
		option bool
		field  smb.Privacy
		want   bool // encrypted
	}{
		{true, smb.PrivacyDefault, true},
		{false, smb.PrivacyDefault, false},
		{true, smb.PrivacyNotRequired, false},
		{false, smb.PrivacyRequired, true},
	} {
		node, err := winsim.New(winsim.Default())
		require.NoError(t, err)
		_, err = newOn(t, node, smb.RequirePrivacy(c.option)).NewSMBGlobalMapping(t.Context(), &smb.NewSMBGlobalMappingRequest{
			RemotePath: `\\files\data`, Username: "csi", Password: "csi-Pa55", Privacy: c.field,
		})
		if logons := node.SMBLogons("files"); err != nil || len(logons) != 1 || logons[0].Encrypted != c.want {
			t.Errorf("%+v: %v, %+v", c, err, logons)
		}
	}
	host := &fakeHost{}
	for _, request := range []smb.NewSMBGlobalMappingRequest{{Privacy: smb.PrivacyRequired}, {Privacy: 7}, {RefuseOtherUser: true}} {
		request.RemotePath = `\\server\share`
		if _, err := newSMB(t, host, fakeFiles{}).NewSMBGlobalMapping(t.Context(), &request); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%+v: %v, want %v", request, err, iofs.ErrInvalid)
		}
	}
	if len(host.calls) != 0 {
		t.Errorf("host saw %q, want nothing", host.calls)
	}
}

// TestRequest_RefuseOtherUser: a request can refuse what the option allows.
func TestRequest_RefuseOtherUser(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	shares := newOn(t, node)
	request := smb.NewSMBGlobalMappingRequest{RemotePath: `\\files\data`, LocalPath: `C:\var\lib\kubelet\plugins\1`, Username: "csi", Password: "csi-Pa55"}
	if _, err := shares.NewSMBGlobalMapping(t.Context(), &request); err != nil {
		t.Fatal(err)
	}
	request.LocalPath, request.Username, request.RefuseOtherUser = `C:\var\lib\kubelet\plugins\2`, "other", true
	if _, err := shares.NewSMBGlobalMapping(t.Context(), &request); !errors.Is(err, winerr.InUse) {
		t.Errorf("another user: %v, want kind %v", err, winerr.InUse)
	}
	request.RefuseOtherUser = false
	if _, err := shares.NewSMBGlobalMapping(t.Context(), &request); err != nil {
		t.Errorf("another user, not refused: %v", err)
	}
}
