package winerr_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The numbers and their classes are written down again, so that a slip is seen: a code
// that wrongly seems to be the caller's fault, or not to be worth another try.
var (
	wantStorageCodes = map[winerr.StorageCode]winerr.Kind{
		1: winerr.Unsupported, 2: winerr.Internal, 3: winerr.Deadline, 4: winerr.Internal, 5: winerr.Invalid, 6: winerr.Busy,
		40000: winerr.NoSpace, 40001: winerr.Denied, 40002: winerr.Unavailable, 40003: winerr.Unavailable, 40004: winerr.Internal,
		41002: winerr.InUse, 41003: winerr.InUse, 41009: winerr.Denied, 42010: winerr.Denied,
		43000: winerr.Invalid, 43001: winerr.Unsupported, 43002: winerr.Unsupported, 43003: winerr.Invalid, 43006: winerr.InUse,
	}
	wantLegacyFormatCodes = map[winerr.LegacyFormatCode]winerr.Kind{
		1: winerr.Unsupported, 2: winerr.Unsupported, 3: winerr.Denied, 4: winerr.Cancelled, 5: winerr.Internal, 6: winerr.InUse,
		7: winerr.Busy, 8: winerr.Unsupported, 9: winerr.Internal, 10: winerr.Invalid, 11: winerr.Unavailable, 12: winerr.InUse,
		13: winerr.InUse, 14: winerr.Unavailable, 15: winerr.Invalid, 16: winerr.Invalid, 17: winerr.Invalid, 18: winerr.Internal,
	}
)

func TestStorageCode_Kind(t *testing.T) {
	checkKinds(t, winerr.KnownStorageCodes(), wantStorageCodes)
	checkKinds(t, winerr.KnownLegacyFormatCodes(), wantLegacyFormatCodes)
	checkKinds(t, []winerr.StorageCode{0, 99, 49999}, map[winerr.StorageCode]winerr.Kind{0: winerr.Internal, 99: winerr.Internal, 49999: winerr.Internal})
}

func checkKinds[C interface {
	comparable
	error
	Kind() winerr.Kind
}](t *testing.T, known []C, want map[C]winerr.Kind) {
	t.Helper()
	if len(known) != len(want) {
		t.Errorf("%d codes are known, want %d", len(known), len(want))
	}
	for code, kind := range want {
		if !slices.Contains(known, code) {
			t.Errorf("%v is not known", code)
		}
		for form, err := range map[string]error{"bare": code, "wrapped": fmt.Errorf("context: %w", code), "with an object": winerr.Wrap("format", "disk 1", code)} {
			if got := winerr.KindOf(err); got != kind || !errors.Is(err, kind) {
				t.Errorf("kind of %q, %s, is %q, want %q", err, form, got, kind)
			}
			if winerr.CodeOf(err) != 0 {
				t.Errorf("%q, %s, has the Windows code %d, which is another thing", err, form, winerr.CodeOf(err))
			}
		}
	}
}

func TestStorageCode_Text(t *testing.T) {
	for err, want := range map[error]string{
		winerr.StorageCacheOutOfDate:      "the storage service has not seen the change yet (storage management error 40003)",
		winerr.StorageCode(49999):         "storage management error 49999",
		winerr.LegacyFormatWriteProtected: "the volume is read-only (Win32_Volume.Format error 6)",
		winerr.LegacyFormatCode(19):       "Win32_Volume.Format error 19",
		winerr.Code(0x80041013):           "Windows error 0x80041013",
	} {
		if got := err.Error(); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	}
	if !errors.Is(winerr.StorageAccessDenied, fs.ErrPermission) || errors.Is(winerr.StorageAccessDenied, fs.ErrInvalid) {
		t.Error("access denied is not what the standard library calls so")
	}
}
