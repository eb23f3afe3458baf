package winerr_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// TestCode_KindAndText: testdata/codes.txt has the number of each code, from
// https://learn.microsoft.com/windows/win32/debug/system-error-codes, its kind and its text. Drivers match texts.
func TestCode_KindAndText(t *testing.T) {
	want, err := os.ReadFile("testdata/codes.txt")
	require.NoError(t, err)
	var got strings.Builder
	for _, code := range winerr.KnownCodes() {
		fmt.Fprintf(&got, "%d\t%s\t%s\n", uint32(code), code.Kind(), code.Error())
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("testdata/codes.txt (-want +got):\n%s", diff)
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
		for _, known := range winerr.KnownCodes() {
			if known.Kind() == kind {
				forms[fmt.Sprintf("code %d", uint32(known))] = known
				forms[fmt.Sprintf("Wrap of code %d", uint32(known))] = winerr.Wrap("open", "disk 1", known)
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
		{winerr.Wrap("create directory", `C:\x`, winerr.AccessDenied), `create directory C:\x: access is denied (Windows error 5)`},
		{
			winerr.As(winerr.NotFound, "create link", `C:\a\b`, winerr.PathNotFound, "create its parent directory with Mkdir first"),
			`create link C:\a\b: a directory on the way to it does not exist (Windows error 3); create its parent directory with Mkdir first`,
		},
		{winerr.New(winerr.Invalid, "look up", "", "the request is missing"), `look up: the request is missing`},
		{winerr.New(winerr.Exists, "create link", `C:\a`, "a link to %s stands there", `C:\b`), `create link C:\a: a link to C:\b stands there`},
		{&winerr.Error{Op: "open", Object: "disk 1", Kind: winerr.Busy}, `open disk 1: busy`},
		{winerr.Wrap("remove", `C:\x`, context.Canceled), `remove C:\x: context canceled`},
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
