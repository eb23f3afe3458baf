package diskid_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func TestPage83(t *testing.T) {
	id := func(set win.CodeSet, association uint32, value string) win.DeviceIdentifier {
		return win.DeviceIdentifier{CodeSet: set, Association: association, Value: []byte(value)}
	}
	for _, c := range []struct {
		name string
		ids  []win.DeviceIdentifier
		want string
	}{
		{"none", nil, ""},
		{"text, with its blanks", []win.DeviceIdentifier{id(win.CodeSetASCII, 0, "Google  pvc-1 ")}, "Google  pvc-1 "},
		{"bytes", []win.DeviceIdentifier{id(win.CodeSetBinary, 0, "\x60\x02\x24\x80\xAB")}, "60022480ab"},
		{"the first, not the best", []win.DeviceIdentifier{id(win.CodeSetASCII, 0, "vendor"), id(win.CodeSetBinary, 0, "\x01")}, "vendor"},
		{"not that of a port or target", []win.DeviceIdentifier{
			id(win.CodeSetBinary, 1, "port"), id(win.CodeSetASCII, 2, "target"), id(win.CodeSetBinary, 0, "\x01"),
		}, "01"},
		{"not UTF-8", []win.DeviceIdentifier{id(win.CodeSetUTF8, 0, "eui.1"), id(win.CodeSetASCII, 0, "a")}, "a"},
		{"nothing suitable", []win.DeviceIdentifier{id(win.CodeSetUTF8, 0, "eui.1"), id(0, 0, "a"), id(win.CodeSetASCII, 1, "a")}, ""},
		{"an empty one", []win.DeviceIdentifier{id(win.CodeSetASCII, 0, ""), id(win.CodeSetASCII, 0, "a")}, ""},
	} {
		if got := diskid.Page83(c.ids); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
