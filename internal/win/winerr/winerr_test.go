package winerr_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The numbers are from https://learn.microsoft.com/windows/win32/debug/system-error-codes
// and are written down here again, so that a slip in the package is seen.
var wantCodes = []struct {
	code winerr.Code
	kind winerr.Kind
	text string
}{
	{1, winerr.Unsupported, "the device does not know this request (Windows error 1)"},
	{2, winerr.NotFound, "it does not exist (Windows error 2)"},
	{3, winerr.NotFound, "a directory on the way to it does not exist (Windows error 3)"},
	{5, winerr.Denied, "access is denied (Windows error 5)"},
	{18, winerr.NotFound, "there are no more files (Windows error 18)"},
	{19, winerr.InUse, "the disk or volume is read-only (Windows error 19)"},
	{21, winerr.Unavailable, "the device is not ready (Windows error 21)"},
	{23, winerr.Internal, "data error (cyclic redundancy check) (Windows error 23)"},
	{24, winerr.Invalid, "the length of the request is wrong (Windows error 24)"},
	{31, winerr.Internal, "the device failed without saying why (Windows error 31)"},
	{32, winerr.Busy, "another process has it open (Windows error 32)"},
	{33, winerr.Busy, "another process has locked a part of it (Windows error 33)"},
	{50, winerr.Unsupported, "the request is not supported (Windows error 50)"},
	{51, winerr.Unavailable, "the server does not answer (Windows error 51)"},
	{52, winerr.Unavailable, "the network has another machine of that name (Windows error 52)"},
	{53, winerr.Unavailable, "the server cannot be reached (Windows error 53)"},
	{54, winerr.Unavailable, "the network is busy (Windows error 54)"},
	{55, winerr.NotFound, "the device is gone (Windows error 55)"},
	{56, winerr.Unavailable, "too many requests to the server are in progress (Windows error 56)"},
	{58, winerr.Unavailable, "the server sent an invalid answer (Windows error 58)"},
	{59, winerr.Unavailable, "the network failed unexpectedly (Windows error 59)"},
	{64, winerr.Unavailable, "the connection to the server was lost (Windows error 64)"},
	{65, winerr.Denied, "network access is denied (Windows error 65)"},
	{67, winerr.NotFound, "the server has no such share (Windows error 67)"},
	{71, winerr.Unavailable, "the server allows no more connections (Windows error 71)"},
	{80, winerr.Exists, "it already exists (Windows error 80)"},
	{85, winerr.Exists, "a connection to it exists (Windows error 85)"},
	{86, winerr.Denied, "the password is wrong (Windows error 86)"},
	{87, winerr.Invalid, "a parameter is wrong (Windows error 87)"},
	{112, winerr.NoSpace, "there is not enough space on the disk (Windows error 112)"},
	{121, winerr.Deadline, "Windows gave up waiting (Windows error 121)"},
	{122, winerr.Internal, "the buffer is too small (Windows error 122)"},
	{123, winerr.Invalid, "the name is malformed (Windows error 123)"},
	{145, winerr.InUse, "the directory is not empty (Windows error 145)"},
	{161, winerr.Invalid, "the path is malformed (Windows error 161)"},
	{170, winerr.Busy, "the object is busy (Windows error 170)"},
	{183, winerr.Exists, "it already exists (Windows error 183)"},
	{206, winerr.Invalid, "the name is too long (Windows error 206)"},
	{234, winerr.Internal, "there is more data than the buffer holds (Windows error 234)"},
	{267, winerr.Invalid, "it is not a directory (Windows error 267)"},
	{433, winerr.NotFound, "the device is gone (Windows error 433)"},
	{1005, winerr.InUse, "the volume has no recognised file system (Windows error 1005)"},
	{1006, winerr.Internal, "the volume was changed from outside (Windows error 1006)"},
	{1051, winerr.InUse, "services that depend on it are running (Windows error 1051)"},
	{1052, winerr.InUse, "the service does not accept this request (Windows error 1052)"},
	{1053, winerr.Deadline, "the service did not answer in time, or its process ended at once (Windows error 1053)"},
	{1055, winerr.Busy, "the list of services is locked (Windows error 1055)"},
	{1056, winerr.Exists, "the service is running already (Windows error 1056)"},
	{1058, winerr.InUse, "the service is disabled (Windows error 1058)"},
	{1060, winerr.NotFound, "there is no such service (Windows error 1060)"},
	{1061, winerr.Busy, "the service is starting or stopping (Windows error 1061)"},
	{1062, winerr.InUse, "the service is not running (Windows error 1062)"},
	{1066, winerr.Internal, "the service reported an error of its own (Windows error 1066)"},
	{1067, winerr.Internal, "its process ended unexpectedly (Windows error 1067)"},
	{1068, winerr.InUse, "a service that it depends on did not start (Windows error 1068)"},
	{1069, winerr.InUse, "the account of the service cannot log on (Windows error 1069)"},
	{1072, winerr.InUse, "the service is about to be deleted (Windows error 1072)"},
	{1075, winerr.InUse, "a service that it depends on is not installed (Windows error 1075)"},
	{1077, winerr.InUse, "it has not been started since the start of the machine (Windows error 1077)"},
	{1115, winerr.Unavailable, "the machine is shutting down (Windows error 1115)"},
	{1117, winerr.Internal, "the device reported an I/O error (Windows error 1117)"},
	{1167, winerr.NotFound, "the device is gone (Windows error 1167)"},
	{1202, winerr.Exists, "Windows remembers an earlier connection to it (Windows error 1202)"},
	{1203, winerr.Unavailable, "no network provider accepted the path (Windows error 1203)"},
	{1219, winerr.InUse, "Windows holds another connection to this server, with other credentials (Windows error 1219)"},
	{1222, winerr.Unavailable, "there is no network (Windows error 1222)"},
	{1225, winerr.Unavailable, "the server refuses connections (Windows error 1225)"},
	{1231, winerr.Unavailable, "the network cannot be reached (Windows error 1231)"},
	{1232, winerr.Unavailable, "the server cannot be reached (Windows error 1232)"},
	{1233, winerr.Unavailable, "the server does not speak the protocol (Windows error 1233)"},
	{1234, winerr.Unavailable, "nothing answers at the port of the server (Windows error 1234)"},
	{1236, winerr.Unavailable, "the connection to the server was aborted (Windows error 1236)"},
	{1240, winerr.Denied, "the account may not log on from this node (Windows error 1240)"},
	{1265, winerr.Denied, "a downgrade attack was detected, or no domain controller can be reached (Windows error 1265)"},
	{1272, winerr.Denied, "this node's policy forbids guest access to shares (Windows error 1272)"},
	{1311, winerr.Unavailable, "no domain controller can be reached to check the credentials (Windows error 1311)"},
	{1312, winerr.Invalid, "Windows has no logon session for the user name (Windows error 1312)"},
	{1314, winerr.Denied, "a required privilege is not held (Windows error 1314)"},
	{1326, winerr.Denied, "the user name or password is wrong (Windows error 1326)"},
	{1327, winerr.Denied, "the account is restricted; an empty password or the time of day may be why (Windows error 1327)"},
	{1328, winerr.Denied, "the account may not log on at this time (Windows error 1328)"},
	{1329, winerr.Denied, "the account may not log on from this node (Windows error 1329)"},
	{1330, winerr.Denied, "the password of the account has expired (Windows error 1330)"},
	{1331, winerr.Denied, "the account is disabled (Windows error 1331)"},
	{1384, winerr.Denied, "the account is in too many groups (Windows error 1384)"},
	{1385, winerr.Denied, "the account may not log on over the network (Windows error 1385)"},
	{1392, winerr.Internal, "the file or directory is corrupted and unreadable (Windows error 1392)"},
	{1393, winerr.Internal, "the disk structure is corrupted and unreadable (Windows error 1393)"},
	{1396, winerr.Denied, "the server is not the one that the domain knows by this name (Windows error 1396)"},
	{1397, winerr.Denied, "the server could not prove who it is (Windows error 1397)"},
	{1398, winerr.Denied, "the clocks of the node and of the server differ too much (Windows error 1398)"},
	{1460, winerr.Deadline, "Windows gave up waiting (Windows error 1460)"},
	{1463, winerr.InUse, "symbolic links of this type are disabled on this node (Windows error 1463)"},
	{1617, winerr.NotFound, "the device was removed (Windows error 1617)"},
	{1786, winerr.Denied, "the node has no trust secret for its domain (Windows error 1786)"},
	{1787, winerr.Denied, "the domain has no account for the node (Windows error 1787)"},
	{1788, winerr.Denied, "the trust between the node's domain and that of the user has failed (Windows error 1788)"},
	{8, winerr.NoSpace, "Windows has not enough memory (Windows error 8)"},
	{1450, winerr.NoSpace, "Windows has not enough system resources (Windows error 1450)"},
	{1455, winerr.NoSpace, "the paging file is too small (Windows error 1455)"},
	{1816, winerr.NoSpace, "a quota of Windows is used up (Windows error 1816)"},
	{1789, winerr.Denied, "the trust between the node and its domain has failed (Windows error 1789)"},
	{1793, winerr.Denied, "the account has expired (Windows error 1793)"},
	{1907, winerr.Denied, "the password of the account must be changed before it can be used (Windows error 1907)"},
	{1909, winerr.Denied, "the account is locked (Windows error 1909)"},
	{1921, winerr.InUse, "its links are broken or form a loop (Windows error 1921)"},
	{2138, winerr.Unavailable, "the Workstation service is not running (Windows error 2138)"},
	{2250, winerr.NotFound, "there is no such connection (Windows error 2250)"},
	{2457, winerr.Denied, "the clocks of the node and of the server differ too much (Windows error 2457)"},
	{4390, winerr.NotFound, "it is not a link (Windows error 4390)"},
	{4392, winerr.Internal, "the data of the link is malformed (Windows error 4392)"},
	{4393, winerr.Internal, "the tag of the link is invalid (Windows error 4393)"},
	{4395, winerr.Denied, "there is a link in the path (Windows error 4395)"},
	{0x80041002, winerr.NotFound, "the storage service does not know it (Windows error 0x80041002)"},
	{0x80310000, winerr.InUse, "the volume is locked by BitLocker (Windows error 0x80310000)"},
}

func TestCode_KindAndText(t *testing.T) {
	known := winerr.KnownCodes()
	for _, want := range wantCodes {
		if got := want.code.Kind(); got != want.kind {
			t.Errorf("kind of code %d is %q, want %q", uint32(want.code), got, want.kind)
		}
		if got := want.code.Error(); got != want.text {
			t.Errorf("text of code %d is %q, want %q", uint32(want.code), got, want.text)
		}
		known = slices.DeleteFunc(known, func(c winerr.Code) bool { return c == want.code })
	}
	if len(known) != 0 {
		t.Errorf("codes without a line in this test: %d", known)
	}
}

// TestCode_Unknown: an unclassified code must not look like the caller's
// fault, and its number must be in the text.
func TestCode_Unknown(t *testing.T) {
	code := winerr.Code(40003)
	if got, want := code.Error(), "Windows error 40003"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if code.Kind() != winerr.Internal || !errors.Is(code, winerr.Internal) {
		t.Errorf("kind %q, want %q", code.Kind(), winerr.Internal)
	}
}

// standard are the kinds that the standard library has an error for.
var standard = map[winerr.Kind]error{
	winerr.Invalid:     fs.ErrInvalid,
	winerr.NotFound:    fs.ErrNotExist,
	winerr.Exists:      fs.ErrExist,
	winerr.Denied:      fs.ErrPermission,
	winerr.Unsupported: errors.ErrUnsupported,
	winerr.Deadline:    context.DeadlineExceeded,
	winerr.Cancelled:   context.Canceled,
}

// TestKind_Matching checks every kind, in each form an error can take, against every
// kind and every error of the standard library: one must match, the others must not.
func TestKind_Matching(t *testing.T) {
	for _, kind := range winerr.Kinds() {
		forms := map[string]error{
			"kind":                  kind,
			"wrapped kind":          fmt.Errorf("context: %w", kind),
			"New":                   winerr.New(kind, "open", "disk 1", "it is made of cheese"),
			"wrapped New":           fmt.Errorf("context: %w", winerr.New(kind, "open", "disk 1", "no")),
			"As of a plain error":   winerr.As(kind, "open", "disk 1", errors.New("cause"), ""),
			"As of another code":    winerr.As(kind, "open", "disk 1", winerr.DirNotEmpty, ""),
			"As of a wrapped code":  winerr.As(kind, "open", "disk 1", fmt.Errorf("cause: %w", winerr.AccessDenied), ""),
			"As of a context error": winerr.As(kind, "open", "disk 1", context.Canceled, ""),
			"As of a path error":    winerr.As(kind, "open", "disk 1", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, ""),
			"Wrap":                  winerr.Wrap("open", "disk 1", fmt.Errorf("cause: %w", kind)),
		}
		for _, known := range wantCodes {
			if known.kind == kind {
				forms[fmt.Sprintf("code %d", uint32(known.code))] = known.code
				forms[fmt.Sprintf("Wrap of code %d", uint32(known.code))] = winerr.Wrap("open", "disk 1", known.code)
			}
		}
		for form, err := range forms {
			if got := winerr.KindOf(err); got != kind {
				t.Errorf("%s, %s: KindOf = %q", kind, form, got)
			}
			for _, other := range winerr.Kinds() {
				if got := errors.Is(err, other); got != (other == kind) {
					t.Errorf("%s, %s: errors.Is(err, %q) = %v", kind, form, other, got)
				}
			}
			for other, target := range standard {
				if got := errors.Is(err, target); got != (other == kind) {
					t.Errorf("%s, %s: errors.Is(err, %q) = %v", kind, form, target, got)
				}
			}
		}
	}
}

func TestKind_EachHasAName(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range winerr.Kinds() {
		if name := kind.String(); name == "" || seen[name] || kind.Error() != name {
			t.Errorf("kind %d is called %q", uint8(kind), name)
		}
		seen[kind.String()] = true
	}
}

func TestKindOf_ForeignErrors(t *testing.T) {
	deadline, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-deadline.Done()
	_, notExist := os.Open(t.TempDir() + "/missing")
	for _, c := range []struct {
		name string
		err  error
		want winerr.Kind
	}{
		{"nil", nil, winerr.Internal},
		{"plain error", io.ErrUnexpectedEOF, winerr.Internal},
		{"deadline", deadline.Err(), winerr.Deadline},
		{"wrapped deadline", fmt.Errorf("wait: %w", deadline.Err()), winerr.Deadline},
		{"cancelled", context.Canceled, winerr.Cancelled},
		{"joined", errors.Join(io.EOF, context.Canceled), winerr.Cancelled},
		{"unsupported", errors.ErrUnsupported, winerr.Unsupported},
		{"file not there", notExist, winerr.NotFound},
		{"permission", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, winerr.Denied},
	} {
		if got := winerr.KindOf(c.err); got != c.want {
			t.Errorf("%s: KindOf(%v) = %q, want %q", c.name, c.err, got, c.want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want winerr.Code
	}{
		{"nil", nil, 0},
		{"no code", io.EOF, 0},
		{"kind", winerr.NotFound, 0},
		{"bare", winerr.NotReady, 21},
		{"wrapped", winerr.Wrap("open", "disk 1", fmt.Errorf("cause: %w", winerr.NotReady)), 21},
		{"in another class", winerr.As(winerr.NotFound, "open", "disk 1", fmt.Errorf("cause: %w", winerr.NotReady), ""), 21},
	} {
		if got := winerr.CodeOf(c.err); got != c.want {
			t.Errorf("%s: CodeOf(%v) = %d, want %d", c.name, c.err, got, c.want)
		}
	}
}

// TestError_CauseStaysVisible: reclassifying hides the class of the cause, nothing else.
func TestError_CauseStaysVisible(t *testing.T) {
	sentinel := errors.New("sentinel")
	pathError := &fs.PathError{Op: "open", Path: "x", Err: errors.Join(sentinel, winerr.AccessDenied)}
	err := winerr.As(winerr.Exists, "open", "disk 1", pathError, "")
	if !errors.Is(err, sentinel) || !errors.Is(err, winerr.AccessDenied) {
		t.Errorf("the cause of %v is not found by errors.Is", err)
	}
	if found := (*fs.PathError)(nil); !errors.As(err, &found) || found != pathError {
		t.Errorf("the cause of %v is not found by errors.As", err)
	}
	if errors.Is(err, winerr.FileNotFound) {
		t.Errorf("%v matches a code it does not have", err)
	}
}

func TestWrap_KeepsTheFirstWrapper(t *testing.T) {
	if err := winerr.Wrap("open", "disk 1", nil); err != nil {
		t.Errorf("Wrap(nil) = %v", err)
	}
	if err := winerr.As(winerr.Busy, "open", "disk 1", nil, "wait"); err != nil {
		t.Errorf("As(nil) = %v", err)
	}
	first := winerr.Wrap("open", "disk 1", winerr.AccessDenied)
	if again := winerr.Wrap("list", "disks", first); again != first {
		t.Errorf("wrapped again it reads %q, want %q", again, first)
	}
	inside := fmt.Errorf("third disk: %w", first)
	if again := winerr.Wrap("list", "disks", inside); again != inside {
		t.Errorf("wrapped again it reads %q, want %q", again, inside)
	}
}

func TestError_Text(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			winerr.Wrap("create directory", `C:\x`, winerr.AccessDenied),
			`create directory C:\x: access is denied (Windows error 5)`,
		},
		{
			winerr.As(winerr.NotFound, "create link", `C:\a\b`, winerr.PathNotFound, "create its parent directory with Mkdir first"),
			`create link C:\a\b: a directory on the way to it does not exist (Windows error 3); create its parent directory with Mkdir first`,
		},
		{
			winerr.New(winerr.Invalid, "look up", "", "the request is missing"),
			`look up: the request is missing`,
		},
		{
			winerr.New(winerr.Exists, "create link", `C:\a`, "a link to %s stands there", `C:\b`),
			`create link C:\a: a link to C:\b stands there`,
		},
		{
			&winerr.Error{Op: "open", Object: "disk 1", Kind: winerr.Busy},
			`open disk 1: busy`,
		},
		{
			winerr.Wrap("remove", `C:\x`, context.Canceled),
			`remove C:\x: context canceled`,
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("text\n%s, want\n%s", got, c.want)
		}
	}
}

func TestNew_KeepsWrappedErrors(t *testing.T) {
	err := winerr.New(winerr.Busy, "format", "volume 1", "gave up: %w", winerr.NotReady)
	if winerr.CodeOf(err) != winerr.NotReady || winerr.KindOf(err) != winerr.Busy {
		t.Errorf("code %d and kind %q, want 21 and busy", winerr.CodeOf(err), winerr.KindOf(err))
	}
}

// class and classed stand for package client/failure: a class, and an error that has one.
type (
	class   string
	classed string
)

func (c class) Error() string          { return string(c) }
func (c class) ClassName() string      { return string(c) }
func (c class) FailureClass() string   { return string(c) }
func (c classed) Error() string        { return "it is " + string(c) }
func (c classed) FailureClass() string { return string(c) }

// TestKind_MatchesClassesByName: package client/failure is in a module that the library does
// not need, so its classes are known by their names.
func TestKind_MatchesClassesByName(t *testing.T) {
	for _, kind := range winerr.Kinds() {
		err := fmt.Errorf("stage: %w", winerr.New(kind, "open", "disk 3", "it rains"))
		for _, other := range winerr.Kinds() {
			if got := errors.Is(err, class(other.String())); got != (other == kind) {
				t.Errorf("errors.Is(%v, class %q) is %t", kind, other, got)
			}
			if errors.Is(err, classed(other.String())) {
				t.Errorf("%v matches an error that only has the class %q", kind, other)
			}
		}
		for _, foreign := range []error{class(kind.String()), classed(kind.String())} {
			if got := winerr.KindOf(fmt.Errorf("fake: %w", foreign)); got != kind {
				t.Errorf("KindOf(%v) is %v, want %v", foreign, got, kind)
			}
		}
	}
	hidden := winerr.As(winerr.InUse, "open", "disk 3", winerr.FileNotFound, "")
	if errors.Is(hidden, class("not found")) || !errors.Is(hidden, class("in use")) {
		t.Errorf("%v has the class of its cause", hidden)
	}
	if got := winerr.KindOf(classed("on fire")); got != winerr.Internal {
		t.Errorf("an unknown class is %v", got)
	}
}
