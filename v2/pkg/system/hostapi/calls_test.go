package api_test

import (
	"flag"
	"testing"
	"testing/synctest"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

var update = flag.Bool("update", false, "rewrite the table of calls in testdata")

// TestCalls pins how many calls of Windows each operation takes, and which. Services take a
// second to start and to stop, in which they are asked how far they are.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, family()...)
		host := systemapi.NewOn(node)
		var rows []calltable.Row
		for _, o := range []struct {
			name string
			do   func() error
		}{
			{"GetBIOSSerialNumber", func() error { _, err := host.GetBIOSSerialNumber(); return err }},
			{"GetService", func() error { _, err := host.GetService("top"); return err }},
			{"StartService, running", func() error { return host.StartService("top") }},
			{"StopService", func() error { return host.StopService("top", false) }},
			{"StopService, stopped", func() error { return host.StopService("top", false) }},
			{"StartService", func() error { return host.StartService("top") }},
			{"StopService by force, with two that depend on it", func() error { return host.StopService("base", true) }},
		} {
			node.ResetCalls()
			if err := o.do(); err != nil {
				t.Fatalf("%s: %v", o.name, err)
			}
			rows = append(rows, calltable.Row{Operation: o.name, Calls: node.Calls()})
		}
		calltable.Compare(t, rows, *update)
	})
}
