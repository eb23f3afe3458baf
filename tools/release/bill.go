package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	noAssertion = "NOASSERTION"
	ourModules  = "github.com/kubernetes-csi/csi-proxy/"
	ourLicense  = "Apache-2.0"
)

// bill returns the bill of materials: every program, every module that the linker put into it, and Go's library.
func (r *release) bill(programs []program, foreign map[string]component) ([]byte, error) {
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: "csi-proxy " + r.version,
		// An identifier that is unique to the document, not an address. It depends on all archives.
		DocumentNamespace: fmt.Sprintf("https://spdx.org/spdxdocs/csi-proxy-%s-%x", r.version, sha256.Sum256(fmt.Append(nil, r.sums))),
		CreationInfo:      &spdx.CreationInfo{Created: r.date.UTC().Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "csi-proxy-release"}}},
	}
	relate := func(from common.ElementID, how string, to common.ElementID) {
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to},
		})
	}
	packages := map[common.ElementID]*spdx.Package{}
	for _, p := range programs {
		id := elementID("Program", p.platform, p.name)
		packages[id] = &spdx.Package{
			PackageSPDXIdentifier: id, PackageName: strings.TrimSuffix(p.name, ".exe"), PackageVersion: r.version,
			PackageFileName: p.platform + "/" + p.name, PrimaryPackagePurpose: "APPLICATION",
			PackageDownloadLocation: noAssertion, PackageLicenseConcluded: ourLicense, PackageLicenseDeclared: ourLicense, PackageCopyrightText: noAssertion,
			PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: fmt.Sprintf("%x", sha256.Sum256(p.content))}},
		}
		relate("DOCUMENT", common.TypeRelationshipDescribe, id)
		for _, m := range p.modules {
			module := r.modulePackage(m, foreign)
			packages[module.PackageSPDXIdentifier] = module
			relate(id, common.TypeRelationshipDependsOn, module.PackageSPDXIdentifier)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(packages)) {
		document.Packages = append(document.Packages, packages[id])
	}
	var out bytes.Buffer
	err := json.Write(document, &out, json.Indent("  "))
	return out.Bytes(), err
}

// modulePackage describes a Go module. The programs have the version of the release, other modules of this repository their own,
// and those that have no tags none.
func (r *release) modulePackage(module *debug.Module, foreign map[string]component) *spdx.Package {
	concluded, license, version, source := noAssertion, foreign[module.Path].license, module.Version, ""
	switch {
	case module.Path == ourModules+"v2/cmd":
		concluded, license, version = ourLicense, ourLicense, r.version
	case strings.HasPrefix(module.Path, ourModules):
		concluded, license, source = ourLicense, ourLicense, "from the source of csi-proxy "+r.version
		version = r.versionOf(module.Path)
	case module.Sum != "":
		source = "go.sum " + module.Sum
	}
	locator := "pkg:golang/" + strings.ToLower(module.Path) // as package URLs of Go modules are written
	if version != "(devel)" {
		locator += "@" + version
	}
	return &spdx.Package{
		PackageSPDXIdentifier: elementID("Module", module.Path, version), PackageName: module.Path, PackageVersion: version,
		PrimaryPackagePurpose: "LIBRARY", PackageSourceInfo: source, PackageDownloadLocation: noAssertion,
		PackageLicenseConcluded: concluded, PackageLicenseDeclared: license, PackageCopyrightText: noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator}},
	}
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// elementID makes an identifier, which has letters, digits, dots and dashes only.
func elementID(parts ...string) common.ElementID {
	return common.ElementID(notInID.ReplaceAllString(strings.Join(parts, "-"), "-"))
}
