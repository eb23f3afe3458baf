package winerr_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// wantISCSICodes has the numbers of iscsierr.h once more, by what the caller can do.
var wantISCSICodes = map[winerr.Kind][]winerr.Code{
	winerr.NotFound:    {0xEFFF000B, 0xEFFF000C, 0xEFFF001C, 0xEFFF0029, 0xEFFF0043, 0xEFFF005D},
	winerr.Exists:      {0xEFFF0016, 0xEFFF0032, 0xEFFF0033, 0xEFFF003F},
	winerr.Busy:        {0xEFFF001F, 0xEFFF0040, 0xEFFF0062},
	winerr.Denied:      {0xEFFF0009, 0xEFFF000A, 0xEFFF0022, 0xEFFF002A, 0xEFFF0034, 0xEFFF004A, 0xEFFF004B, 0xEFFF004C, 0xEFFF004D, 0xEFFF004E, 0xEFFF0065},
	winerr.Unavailable: {0xEFFF0002, 0xEFFF0003, 0xEFFF0012, 0xEFFF0013, 0xEFFF0014, 0xEFFF0024, 0xEFFF005F, 0xEFFF0060},
	winerr.InUse:       {0xEFFF0039, 0xEFFF003E},
	winerr.Invalid:     {0xAFFF0048, 0xEFFF0051, 0xEFFF0056, 0xEFFF0068},
	winerr.Internal:    {0xEFFF0054, 0x8007007A},
}

func TestISCSICodes_KindAndText(t *testing.T) {
	want := map[winerr.Code]winerr.Kind{}
	for kind, codes := range wantISCSICodes {
		for _, code := range codes {
			want[code] = kind
		}
	}
	for _, code := range winerr.KnownISCSICodes() {
		if kind, ok := want[code]; !ok || code.Kind() != kind {
			t.Errorf("%v is of kind %q, want %q", code, code.Kind(), kind)
		}
		if text, number, ok := strings.Cut(code.Error(), " (Windows error 0x"); !ok || text == "" || len(number) != len("efff0000)") {
			t.Errorf("text %q has no words or no number", code.Error())
		}
		delete(want, code)
	}
	if len(want) != 0 {
		t.Errorf("codes that are not known: %v", want)
	}
	const phrase = "the target has already been logged in via an iSCSI session" // democratic-csi looks for it
	if got := winerr.ISCSITargetAlreadyLoggedIn.Error(); got != phrase+" (Windows error 0xefff003f)" {
		t.Errorf("text %q, want %q in it", got, phrase)
	}
}
