package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

func TestModulePackage(t *testing.T) {
	r := &release{version: "v9.8.7"}
	foreign := components{
		"github.com/Microsoft/go-winio":                  {license: "MIT"},
		"github.com/kubernetes-csi/csi-proxy-of-another": {license: "BSD-2-Clause"},
	}
	for _, test := range []struct {
		module                                    debug.Module
		id, version, license, sourceInfo, locator string
	}{
		{
			debug.Module{Path: "github.com/Microsoft/go-winio", Version: "v0.6.4", Sum: "h1:abc="},
			"SPDXRef-Module-github.com-Microsoft-go-winio-v0.6.4", "v0.6.4", "MIT", "go.sum h1:abc=", "pkg:golang/github.com/microsoft/go-winio@v0.6.4",
		},
		{
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy/v2", Version: "(devel)"},
			"SPDXRef-Module-github.com-kubernetes-csi-csi-proxy-v2-v9.8.7", "v9.8.7", ourLicense, "", "pkg:golang/github.com/kubernetes-csi/csi-proxy/v2@v9.8.7",
		},
		{
			// As it is without a workspace: the version that others get, and the source beside it.
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy/client", Version: "v1.3.0", Replace: &debug.Module{Path: "./client", Version: "(devel)"}},
			"SPDXRef-Module-github.com-kubernetes-csi-csi-proxy-client-devel-", "(devel)", ourLicense, "from the source of csi-proxy v9.8.7",
			"pkg:golang/github.com/kubernetes-csi/csi-proxy/client",
		},
		{
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy-of-another", Version: "v0.1.0"},
			"SPDXRef-Module-github.com-kubernetes-csi-csi-proxy-of-another-v0.1.0", "v0.1.0", "BSD-2-Clause", "",
			"pkg:golang/github.com/kubernetes-csi/csi-proxy-of-another@v0.1.0",
		},
	} {
		got := r.modulePackage(&test.module, foreign)
		if got.ID != test.id || got.Version != test.version || got.LicenseDeclared != test.license || got.SourceInfo != test.sourceInfo || got.References[0].Locator != test.locator {
			t.Errorf("%s: %+v", test.module.Path, got)
		}
	}
}

// TestBill: every relationship is between elements that exist, each of which has an id of its own,
// and every program is described and depends on the Go toolchain.
func TestBill(t *testing.T) {
	r := newRelease(t)
	programs, foreign := r.contents(t)
	content, err := r.bill(programs, foreign)
	if err != nil {
		t.Fatal(err)
	}
	var document spdxDocument
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	elements := map[string]spdxPackage{document.ID: {}}
	for _, p := range document.Packages {
		if _, twice := elements[p.ID]; twice {
			t.Errorf("%s is there twice", p.ID)
		}
		elements[p.ID] = p
		if p.LicenseDeclared == "" || p.LicenseDeclared == noAssertion {
			t.Errorf("%s has no licence", p.ID)
		}
	}
	described, onGo := 0, 0
	for _, relationship := range document.Relationships {
		_, from := elements[relationship.Element]
		related, to := elements[relationship.Related]
		if !from || !to {
			t.Errorf("%+v is about something that is not there", relationship)
		}
		if relationship.Type == "DESCRIBES" && len(related.Checksums) == 1 {
			described++
		}
		if relationship.Type == "DEPENDS_ON" && related.Name == "stdlib" {
			onGo++
		}
	}
	if described != len(programs) || onGo != len(programs) {
		t.Errorf("%d programs are described and %d depend on Go, want %d", described, onGo, len(programs))
	}
	if !strings.HasPrefix(document.Namespace, "https://") || document.CreationInfo.Created != "2026-11-15T08:00:00Z" {
		t.Errorf("namespace %s, created %s", document.Namespace, document.CreationInfo.Created)
	}
}
