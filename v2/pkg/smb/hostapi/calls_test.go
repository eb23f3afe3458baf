package api_test

import (
	"flag"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

var update = flag.Bool("update", false, "rewrite the table of calls in testdata")

// TestCalls pins how many calls of Windows each operation takes, and which: those of a driver
// that stages a share in two places and unstages it again.
func TestCalls(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	must(t, mapTo(host, share, ""), node.Mkdir(share+`\a`), node.RemoveSMBMapping(t.Context(), share, true))
	var rows []calltable.Row
	for _, o := range []struct {
		name string
		do   func(smbapi.HostAPI) error
	}{
		{"NewSMBGlobalMapping", func(h smbapi.HostAPI) error { return mapTo(h, share, stage) }},
		{"NewSMBGlobalMapping, again", func(h smbapi.HostAPI) error { return mapTo(h, share, stage) }},
		{"NewSMBGlobalMapping, a second link", func(h smbapi.HostAPI) error { return mapTo(h, share, stage2) }},
		{"RemoveSMBGlobalMapping, in use", func(h smbapi.HostAPI) error { return h.RemoveSMBGlobalMapping(share) }},
		{"RemoveSMBGlobalMapping, in use, again", func(h smbapi.HostAPI) error { return h.RemoveSMBGlobalMapping(share) }},
		{"RemoveSMBGlobalMapping", func(h smbapi.HostAPI) error {
			must(t, node.RemoveAll(stage), node.RemoveAll(stage2))
			return h.RemoveSMBGlobalMapping(share)
		}},
		{"NewSMBGlobalMapping, a directory", func(h smbapi.HostAPI) error { return mapTo(h, share+`\a`, stage) }},
		{"NewSMBGlobalMapping, a directory, again", func(h smbapi.HostAPI) error { return mapTo(h, share+`\a`, stage) }},
		{"NewSMBGlobalMapping, a second directory", func(h smbapi.HostAPI) error { return mapTo(h, share+`\a`, stage2) }},
		{"LinksGone, others left", func(h smbapi.HostAPI) error {
			must(t, h.RemoveSMBGlobalMapping(share), node.RemoveAll(stage))
			node.ResetCalls()
			h.(smbapi.Extended).LinksGone(stage)
			return nil
		}},
		{"LinksGone", func(h smbapi.HostAPI) error {
			must(t, node.RemoveAll(stage2))
			h.(smbapi.Extended).LinksGone(stage2)
			return nil
		}},
		{"RemoveSMBGlobalMapping, again", func(h smbapi.HostAPI) error { return h.RemoveSMBGlobalMapping(share) }},
	} {
		node.ResetCalls()
		if err := o.do(host); err != nil {
			t.Fatalf("%s: %v", o.name, err)
		}
		rows = append(rows, calltable.Row{Operation: o.name, Calls: node.Calls()})
	}
	calltable.Compare(t, rows, *update)
}
