package api_test

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	// Every published version. TestAllVersionsAreImported compares the list with
	// the directories.
	_ "github.com/kubernetes-csi/csi-proxy/client/api"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta3"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
)

var update = flag.Bool("update", false, "rewrite frozen.txt")

const (
	// repository is what the names of our files in the registry start with.
	repository = "github.com/kubernetes-csi/csi-proxy/"
	// root is where this package is in the repository.
	root = "client/api/"

	frozenFile = "frozen.txt"
	preamble   = `The published CSI Proxy API: every service, method, message, field and enum with its name,
number and type, read from the generated code. Drivers were compiled against this, so a
line that stands here stays. The test in frozen_test.go compares. Only after adding a version,
rewrite the file with

	go test ./api -run Frozen -update

in the directory client. The diff must only add.

`
)

// TestFrozen fails when the API is no longer the one that drivers were compiled
// against.
func TestFrozen(t *testing.T) {
	var b strings.Builder
	b.WriteString(preamble)
	for i, file := range registered() {
		if i > 0 {
			b.WriteString("\n")
		}
		describeFile(&b, file)
	}
	got := b.String()

	if *update {
		if err := os.WriteFile(frozenFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	// A checkout on Windows may have other line ends.
	if diff := firstDifference(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("the generated code is not the frozen API:\n%s", diff)
	}
}

// TestAllVersionsAreImported makes sure that TestFrozen sees all there is: each
// directory <group>/<version> must be registered, under the path it was published
// with, and nothing else may be.
func TestAllVersionsAreImported(t *testing.T) {
	want := []string{repository + root + "errors.proto"}
	entries, err := filepath.Glob("*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := os.Stat(entry); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			want = append(want, repository+root+path.Join(filepath.ToSlash(entry), "api.proto"))
		}
	}

	var got []string
	for _, file := range registered() {
		got = append(got, file.Path())
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not registered: import its package in this file", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s is registered but has no directory here", name)
		}
	}
}

// registered returns our files in the registry, sorted by path. A file that was
// registered under another path is missing here, which TestAllVersionsAreImported
// notices.
func registered() []protoreflect.FileDescriptor {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(file.Path(), repository+root) {
			files = append(files, file)
		}
		return true
	})
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int {
		return strings.Compare(a.Path(), b.Path())
	})
	return files
}

// firstDifference shows where two texts part, with a few lines around, or returns
// "" for equal texts.
func firstDifference(want, got string) string {
	const before, after = 3, 5
	wantLines, gotLines := strings.Split(want, "\n"), strings.Split(got, "\n")
	at := 0
	for at < len(wantLines) && at < len(gotLines) && wantLines[at] == gotLines[at] {
		at++
	}
	if at == len(wantLines) && at == len(gotLines) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "first difference at line %d (- %s, + generated code)\n", at+1, frozenFile)
	for _, line := range wantLines[max(0, at-before):at] {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	for _, line := range wantLines[at:min(at+after, len(wantLines))] {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, line := range gotLines[at:min(at+after, len(gotLines))] {
		fmt.Fprintf(&b, "+ %s\n", line)
	}
	return b.String()
}
