package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

func TestModulePackage(t *testing.T) {
	r := &release{version: "v9.8.7"}
	for _, test := range []struct {
		module                         debug.Module
		id, version, license, sumOrNil string
	}{
		{
			debug.Module{Path: "github.com/spf13/cobra", Version: "v1.10.2", Sum: "h1:abc="},
			"SPDXRef-Module-github.com-spf13-cobra-v1.10.2", "v1.10.2", noAssertion, "go.sum h1:abc=",
		},
		{
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy/client", Version: "(devel)"},
			"SPDXRef-Module-github.com-kubernetes-csi-csi-proxy-client-v9.8.7", "v9.8.7", ourLicense, "",
		},
		{
			debug.Module{Path: "github.com/kubernetes-csi/csi-proxy-of-another", Version: "v0.1.0"},
			"SPDXRef-Module-github.com-kubernetes-csi-csi-proxy-of-another-v0.1.0", "v0.1.0", noAssertion, "",
		},
	} {
		got := r.modulePackage(&test.module)
		if got.ID != test.id || got.Version != test.version || got.LicenseDeclared != test.license || got.SourceInfo != test.sumOrNil {
			t.Errorf("%s: %+v", test.module.Path, got)
		}
		if want := "pkg:golang/" + test.module.Path + "@" + test.version; got.References[0].Locator != want {
			t.Errorf("%s: %+v, want %s", test.module.Path, got.References, want)
		}
	}
}

// TestBill: every relationship is between elements that exist, each of which has an id of its own,
// and every program is described and depends on the Go toolchain.
func TestBill(t *testing.T) {
	r := newRelease(t)
	programs, err := findPrograms(r.dist + "/build")
	if err != nil {
		t.Fatal(err)
	}
	content, err := r.bill(programs)
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
