package api_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestSerial(t *testing.T) {
	const denied, gone = uint32(winerr.AccessDenied), 0x80041010
	for name, c := range map[string]struct {
		firmware   winsim.Firmware
		table, wmi uint32 // with what they fail
		want       string
		kind       error
		calls      map[string]int
	}{
		"table":                           {firmware: winsim.Firmware{Serial: "table"}, want: "table", calls: map[string]int{"FirmwareTable": 1}},
		"table, whatever WMI does":        {firmware: winsim.Firmware{Serial: "table"}, wmi: denied, want: "table"},
		"WMI, if the table has none":      {firmware: winsim.Firmware{WMISerial: "wmi "}, want: "wmi", calls: map[string]int{"FirmwareTable": 1, "BIOSSerialNumber": 1}},
		"WMI, if there is no table":       {firmware: winsim.Firmware{WMISerial: "wmi"}, table: 1, want: "wmi"},
		"none":                            {want: "", calls: map[string]int{"FirmwareTable": 1, "BIOSSerialNumber": 1}},
		"none, and WMI fails":             {wmi: gone, want: ""},
		"no table, and WMI fails":         {table: denied, wmi: gone, kind: winerr.Denied},
		"no table, and WMI has none":      {table: 1, want: ""},
		"a table that makes no sense":     {firmware: winsim.Firmware{Table: "00ff", WMISerial: "wmi"}, want: "wmi"},
		"a table without anything at all": {firmware: winsim.Firmware{Table: "00"}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			node, err := winsim.New(winsim.Model{Firmware: c.firmware})
			must(t, err)
			for call, code := range map[string]uint32{"FirmwareTable": c.table, "BIOSSerialNumber": c.wmi} {
				if code != 0 {
					inject(t, node, winsim.Fault{Call: call, Error: code})
				}
			}
			got, err := systemapi.NewOn(node).GetBIOSSerialNumber()
			if got != c.want || (err == nil) != (c.kind == nil) || (err != nil && !errors.Is(err, c.kind)) {
				t.Errorf("%q, %v, want %q, %v", got, err, c.want, c.kind)
			}
			if err != nil && !strings.Contains(err.Error(), "WMI") {
				t.Errorf("%v does not say that WMI was asked, too", err)
			}
			if calls := node.Calls(); c.calls != nil && !maps.Equal(calls, c.calls) {
				t.Errorf("calls %v, want %v", calls, c.calls)
			}
		})
	}
}

// TestSerial_CallerLeaves: the end of the caller's time is not an answer of the machine.
func TestSerial_CallerLeaves(t *testing.T) {
	for _, call := range []string{"FirmwareTable", "BIOSSerialNumber"} {
		node, err := winsim.New(winsim.Model{})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		inject(t, node, winsim.Fault{Call: call, Delay: time.Hour, Do: func(*winsim.Node) { cancel() }})
		if got, err := bind(ctx, systemapi.NewOn(node)).GetBIOSSerialNumber(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %q, %v", call, got, err)
		}
	}
}
