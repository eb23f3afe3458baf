package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
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
			"Module-github.com-Microsoft-go-winio-v0.6.4", "v0.6.4", "MIT", "go.sum h1:abc=", "pkg:golang/github.com/microsoft/go-winio@v0.6.4",
		},
		{
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy/v2", Version: "(devel)"},
			"Module-github.com-kubernetes-csi-csi-proxy-v2-v9.8.7", "v9.8.7", ourLicense, "", "pkg:golang/github.com/kubernetes-csi/csi-proxy/v2@v9.8.7",
		},
		{
			// Without a workspace: the version that others get, and the source beside it.
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy/client", Version: "v1.3.0", Replace: &debug.Module{Path: "./client", Version: "(devel)"}},
			"Module-github.com-kubernetes-csi-csi-proxy-client-devel-", "(devel)", ourLicense, "from the source of csi-proxy v9.8.7",
			"pkg:golang/github.com/kubernetes-csi/csi-proxy/client",
		},
		{
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy-of-another", Version: "v0.1.0"},
			"Module-github.com-kubernetes-csi-csi-proxy-of-another-v0.1.0", "v0.1.0", "BSD-2-Clause", "",
			"pkg:golang/github.com/kubernetes-csi/csi-proxy-of-another@v0.1.0",
		},
	} {
		got := r.modulePackage(&test.module, foreign)
		if string(got.PackageSPDXIdentifier) != test.id || got.PackageVersion != test.version || got.PackageLicenseDeclared != test.license ||
			got.PackageSourceInfo != test.sourceInfo || got.PackageExternalReferences[0].Locator != test.locator {
			t.Errorf("%s: %+v", test.module.Path, got)
		}
	}
}

// TestBill: every relationship is between existing elements, ids are unique, and every program is
// described and depends on the Go toolchain.
func TestBill(t *testing.T) {
	r := newRelease(t)
	programs, foreign := r.contents(t)
	content, err := r.bill(programs, foreign)
	if err != nil {
		t.Fatal(err)
	}
	var document spdx.Document
	if err := json.ReadInto(bytes.NewReader(content), &document); err != nil {
		t.Fatal(err)
	}
	elements := map[common.ElementID]*spdx.Package{document.SPDXIdentifier: {}}
	for _, p := range document.Packages {
		if elements[p.PackageSPDXIdentifier] != nil {
			t.Errorf("%s is there twice", p.PackageSPDXIdentifier)
		}
		elements[p.PackageSPDXIdentifier] = p
		if p.PackageLicenseDeclared == "" || p.PackageLicenseDeclared == noAssertion {
			t.Errorf("%s has no licence", p.PackageSPDXIdentifier)
		}
	}
	described, onGo := 0, 0
	for _, relationship := range document.Relationships {
		from, to := elements[relationship.RefA.ElementRefID], elements[relationship.RefB.ElementRefID]
		switch {
		case from == nil || to == nil:
			t.Errorf("%+v names a missing element", relationship)
		case relationship.Relationship == "DESCRIBES" && len(to.PackageChecksums) == 1:
			described++
		case relationship.Relationship == "DEPENDS_ON" && to.PackageName == goLibrary:
			onGo++
		}
	}
	if described != len(programs) || onGo != len(programs) {
		t.Errorf("%d programs are described and %d depend on Go, want %d", described, onGo, len(programs))
	}
	if !strings.HasPrefix(document.DocumentNamespace, "https://") || document.CreationInfo.Created != "2026-11-15T08:00:00Z" {
		t.Errorf("namespace %s, created %s", document.DocumentNamespace, document.CreationInfo.Created)
	}
}
