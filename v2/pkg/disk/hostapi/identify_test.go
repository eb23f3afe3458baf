package api_test

import (
	"strings"
	"testing"

	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// locations are texts as Windows shows them on real machines.
var locations = []struct {
	text string
	want diskapi.DiskLocation
	ok   bool
}{
	{
		"Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 1",
		diskapi.DiskLocation{Adapter: "1", Bus: "0", Target: "0", LUNID: "1"},
		true,
	},
	{
		"PCI Slot 0 : Bus 9 : Device 0 : Function 0 : Adapter 3 : Port 0 : Target 0 : LUN 0",
		diskapi.DiskLocation{Adapter: "3", Bus: "9", Target: "0", LUNID: "0"},
		true,
	},
	{
		"PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 0",
		diskapi.DiskLocation{Adapter: "0", Target: "1", LUNID: "0"},
		true,
	},
	{
		"Integrated : Bus 0 : Device 23 : Function 0 : Adapter 1 : Port 6 : Target 8 : LUN 0",
		diskapi.DiskLocation{Adapter: "1", Bus: "0", Target: "8", LUNID: "0"},
		true,
	},
	{
		"Integrated : Bus 12606208 : Device 0 : Function 0 : Adapter 0",
		diskapi.DiskLocation{Adapter: "0", Bus: "12606208"},
		true,
	},
	{
		"Integrated:Bus 1:Device 0:Function 0:Adapter 2:LUN 5",
		diskapi.DiskLocation{Adapter: "2", Bus: "1", LUNID: "5"},
		true,
	},
	{"Adapter 0 : Port 0 : Target 1 : LUN 0", diskapi.DiskLocation{}, false},               // four parts
	{"Integrated : Bus 0 : Device 1 : Function 2 : Port 3", diskapi.DiskLocation{}, false}, // no adapter
	{`C:\vm\disk.vhdx`, diskapi.DiskLocation{}, false},
	{"", diskapi.DiskLocation{}, false},
	{"::::", diskapi.DiskLocation{}, false},
}

func TestParseLocation(t *testing.T) {
	for _, c := range locations {
		got, ok := diskapi.ParseLocation(c.text)
		if ok != c.ok || (ok && got != c.want) {
			t.Errorf("%q: %+v, %v, want %+v, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParseLocation(f *testing.F) {
	for _, c := range locations {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := diskapi.ParseLocation(text)
		if ok != (at.Adapter != "" && strings.Count(text, ":") >= 4) {
			t.Errorf("%q: %+v, %v", text, at, ok)
		}
		for _, part := range []string{at.Adapter, at.Bus, at.Target, at.LUNID} {
			if strings.ContainsAny(part, " :") {
				t.Errorf("%q: %+v", text, at)
			}
		}
	})
}
