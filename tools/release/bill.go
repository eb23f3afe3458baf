package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
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
	ourModules  = "github.com/kubernetes-csi/csi-proxy"
	mainModule  = ourModules + "/v2"
	ourLicense  = "Apache-2.0"
)

// bill returns the bill of materials: every program, every module that the linker put into it,
// and the Go toolchain.
func (r *release) bill(programs []program, foreign components) ([]byte, error) {
	const self common.ElementID = "DOCUMENT"
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: self, DocumentName: "csi-proxy " + r.version,
		CreationInfo: &spdx.CreationInfo{
			Created:  r.date.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "csi-proxy-release"}},
		},
	}
	relate := func(from common.ElementID, how string, to common.ElementID) {
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to},
		})
	}
	modules := map[common.ElementID]*spdx.Package{}
	for _, p := range programs {
		contents, err := modulesOf(p)
		if err != nil {
			return nil, err
		}
		described, err := r.programPackage(p)
		if err != nil {
			return nil, err
		}
		document.Packages = append(document.Packages, described)
		relate(self, common.TypeRelationshipDescribe, described.PackageSPDXIdentifier)
		for _, m := range contents {
			module := r.modulePackage(m, foreign)
			modules[module.PackageSPDXIdentifier] = module
			relate(described.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, module.PackageSPDXIdentifier)
		}
	}
	document.Packages = slices.AppendSeq(document.Packages, maps.Values(modules))
	slices.SortFunc(document.Packages, func(a, b *spdx.Package) int { return cmp.Compare(a.PackageSPDXIdentifier, b.PackageSPDXIdentifier) })
	slices.SortFunc(document.Relationships, func(a, b *spdx.Relationship) int {
		return cmp.Or(
			cmp.Compare(a.RefA.ElementRefID, b.RefA.ElementRefID),
			cmp.Compare(a.Relationship, b.Relationship),
			cmp.Compare(a.RefB.ElementRefID, b.RefB.ElementRefID),
		)
	})
	// The namespace must be unique to the document, so it is made from the content. It is an identifier,
	// not an address: https://spdx.github.io/spdx-spec/v2.3/document-creation-information/#65-spdx-document-namespace-field
	var content bytes.Buffer
	if err := json.Write(document, &content); err != nil {
		return nil, err
	}
	document.DocumentNamespace = fmt.Sprintf("https://spdx.org/spdxdocs/csi-proxy-%s-%x", r.version, sha256.Sum256(content.Bytes()))
	content.Reset()
	err := json.Write(document, &content, json.Indent("  "))
	return content.Bytes(), err
}

// programPackage describes a program.
func (r *release) programPackage(p program) (*spdx.Package, error) {
	content, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	return &spdx.Package{
		PackageSPDXIdentifier: elementID("Program", p.platform, p.name()),
		PackageName:           strings.TrimSuffix(p.name(), ".exe"), PackageVersion: r.version,
		PackageFileName: p.platform + "/" + p.name(), PrimaryPackagePurpose: "APPLICATION",
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: ourLicense, PackageLicenseDeclared: ourLicense, PackageCopyrightText: noAssertion,
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: fmt.Sprintf("%x", sha256.Sum256(content))}},
	}, nil
}

// modulePackage describes a Go module. The module with the programs has the version of the release.
// The other modules of this repository have no version here: they are built from the same source,
// and their own tags differ.
func (r *release) modulePackage(module *debug.Module, foreign components) *spdx.Package {
	described := &spdx.Package{
		PackageName: module.Path, PackageVersion: module.Version, PrimaryPackagePurpose: "LIBRARY",
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion,
		PackageLicenseDeclared: foreign[module.Path].license, PackageCopyrightText: noAssertion,
	}
	switch {
	case module.Path == mainModule:
		described.PackageVersion = r.version
	case ours(module.Path):
		described.PackageVersion = "(devel)"
		described.PackageSourceInfo = "from the source of csi-proxy " + r.version
	case module.Sum != "":
		described.PackageSourceInfo = "go.sum " + module.Sum
	}
	if ours(module.Path) {
		described.PackageLicenseConcluded, described.PackageLicenseDeclared = ourLicense, ourLicense
	}
	// Package URLs of Go modules are in lower case, unlike the module's path.
	locator := "pkg:golang/" + strings.ToLower(module.Path)
	if described.PackageVersion != "(devel)" {
		locator += "@" + described.PackageVersion
	}
	described.PackageSPDXIdentifier = elementID("Module", module.Path, described.PackageVersion)
	described.PackageExternalReferences = []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator}}
	return described
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// elementID makes an identifier, which has letters, digits, dots and dashes only.
func elementID(parts ...string) common.ElementID {
	return common.ElementID(notInID.ReplaceAllString(strings.Join(parts, "-"), "-"))
}
