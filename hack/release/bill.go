package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The parts of SPDX 2.3 that we use, see https://spdx.github.io/spdx-spec/v2.3/.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		CreationInfo  spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"name"`
		Version          string         `json:"versionInfo,omitempty"`
		FileName         string         `json:"packageFileName,omitempty"`
		Purpose          string         `json:"primaryPackagePurpose"`
		DownloadLocation string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		Checksums        []spdxChecksum `json:"checksums,omitempty"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		Copyright        string         `json:"copyrightText"`
		SourceInfo       string         `json:"sourceInfo,omitempty"`
		References       []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const (
	noAssertion = "NOASSERTION"
	ourModules  = "github.com/kubernetes-csi/csi-proxy"
	mainModule  = ourModules + "/v2"
	ourLicense  = "Apache-2.0"
)

// bill returns the bill of materials of the programs: every program, and every module that the
// linker says it holds, with the Go toolchain itself.
func (r *release) bill(programs []program, foreign components) ([]byte, error) {
	document := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "csi-proxy " + r.version,
		CreationInfo: spdxCreation{Created: r.date.UTC().Format(time.RFC3339), Creators: []string{"Tool: csi-proxy-hack-release"}},
	}
	modules := map[string]spdxPackage{}
	for _, p := range programs {
		contents, err := modulesOf(p)
		if err != nil {
			return nil, err
		}
		self, err := r.programPackage(p)
		if err != nil {
			return nil, err
		}
		document.Packages = append(document.Packages, self)
		document.Relationships = append(document.Relationships, spdxRelationship{document.ID, "DESCRIBES", self.ID})
		for _, module := range contents {
			described := r.modulePackage(module, foreign)
			modules[described.ID] = described
			document.Relationships = append(document.Relationships, spdxRelationship{self.ID, "DEPENDS_ON", described.ID})
		}
	}
	for _, module := range modules {
		document.Packages = append(document.Packages, module)
	}
	slices.SortFunc(document.Packages, func(a, b spdxPackage) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(document.Relationships, func(a, b spdxRelationship) int {
		return strings.Compare(a.Element+" "+a.Type+" "+a.Related, b.Element+" "+b.Type+" "+b.Related)
	})
	// A namespace is of one document, so it depends on what is in it.
	content, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	document.Namespace = fmt.Sprintf("https://%s/spdx/%s/%x", ourModules, r.version, sha256.Sum256(content))
	content, err = json.MarshalIndent(document, "", "  ")
	return append(content, '\n'), err
}

// programPackage describes a program.
func (r *release) programPackage(p program) (spdxPackage, error) {
	content, err := os.ReadFile(p.path)
	if err != nil {
		return spdxPackage{}, err
	}
	return spdxPackage{
		ID:   spdxID("Program", p.platform, p.name()),
		Name: strings.TrimSuffix(p.name(), ".exe"), Version: r.version, FileName: p.platform + "/" + p.name(), Purpose: "APPLICATION",
		DownloadLocation: noAssertion, LicenseConcluded: ourLicense, LicenseDeclared: ourLicense, Copyright: noAssertion,
		Checksums: []spdxChecksum{{"SHA256", fmt.Sprintf("%x", sha256.Sum256(content))}},
	}, nil
}

// modulePackage describes a Go module. The one with the programs is of this release, whatever the go
// command calls it. Others of this repository have no version of their own here: they are built from
// the source beside it, and the release's version is none of theirs.
func (r *release) modulePackage(module *debug.Module, foreign components) spdxPackage {
	described := spdxPackage{
		Name: module.Path, Version: module.Version, Purpose: "LIBRARY",
		DownloadLocation: noAssertion, LicenseConcluded: noAssertion, LicenseDeclared: foreign[module.Path].license, Copyright: noAssertion,
	}
	// Package URLs of Go modules are in lower case, whatever the module's path is.
	locator := "pkg:golang/" + strings.ToLower(module.Path)
	switch {
	case module.Path == mainModule:
		described.Version = r.version
	case ours(module.Path):
		described.Version = "(devel)"
		described.SourceInfo = "from the source of csi-proxy " + r.version
	case module.Sum != "":
		described.SourceInfo = "go.sum " + module.Sum
	}
	if ours(module.Path) {
		described.LicenseConcluded, described.LicenseDeclared = ourLicense, ourLicense
	}
	if described.Version != "(devel)" {
		locator += "@" + described.Version
	}
	described.ID = spdxID("Module", module.Path, described.Version)
	described.References = []spdxRef{{"PACKAGE-MANAGER", "purl", locator}}
	return described
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// spdxID makes an identifier, which may have letters, digits, dots and dashes only.
func spdxID(parts ...string) string {
	return "SPDXRef-" + notInID.ReplaceAllString(strings.Join(parts, "-"), "-")
}
