package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// script runs a script of this directory in another one, and returns what it prints.
func script(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	path, err := filepath.Abs(name)
	must(t, err)
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	return string(out), err
}

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "CHANGELOG.md"), readFile(t, "testdata/changelog.txt"))
	const added = "### Added\n\n- A page, see [ADR 1](docs/adr/1.md#why) and [Go](https://go.dev/).\n"
	for args, want := range map[string]string{
		"v9.8.7":                      added,
		"v9.8.7 https://git.test/o/p": strings.ReplaceAll(added, "docs/", "https://git.test/o/p/blob/v9.8.7/docs/"),
		"v9.8.7-rc.1":                 "- A candidate.\n",
		"v2.0.0":                      "CHANGELOG.md says nothing below the heading of 2.0.0\n",
		"v9.8":                        "CHANGELOG.md has no heading '## [9.8] - DATE'; write one above the changes of the version\n",
	} {
		got, err := script(t, dir, "notes.sh", strings.Fields(args)...)
		if got != want || (err != nil) != strings.HasPrefix(want, "CHANGELOG.md") {
			t.Errorf("%s: %v, %q, want %q", args, err, got, want)
		}
	}
}

// TestResources: Windows compares the numbers of a version, and shows the rest. What writes the resource copies its input here.
func TestResources(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go-winres"), []byte("#!/bin/sh\ncp \"$3\" \"$7.json\"\n"))
	must(t, os.Chmod(filepath.Join(dir, "go-winres"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "csi-proxy"), 0o755))
	for version, want := range map[string]string{
		"v2.10.3":           "2.10.3.0",
		"v2.1.0-rc.1":       "2.1.0.0",
		"2.0.1+build":       "2.0.1.0",
		"v70000.1.1":        "",
		"1f94e68-dirty":     "",
		"v2.0.0-4-g1f94e68": "2.0.0.0",
	} {
		out, err := script(t, dir, "resources.sh", "./go-winres", version, "1f94e68", "2026-11-15T08:00:00Z", "csi-proxy")
		if err != nil {
			t.Fatal(err, out)
		}
		type texts struct{ FileVersion, OriginalFilename, Comments string }
		var got map[string]map[string]map[string]struct {
			Fixed map[string]string
			Info  map[string]texts
		}
		must(t, json.Unmarshal(readFile(t, filepath.Join(dir, "csi-proxy", "version.json")), &got))
		resource := got["RT_VERSION"]["#1"]["0409"]
		if resource.Fixed["file_version"] != want || resource.Info["0409"] != (texts{version, "csi-proxy.exe", "1f94e68 2026-11-15T08:00:00Z"}) {
			t.Errorf("%s: %+v", version, resource)
		}
	}
	if out, err := script(t, dir, "resources.sh", "./go-winres", "v1", "", "", "other"); err == nil || !strings.Contains(out, "no description") {
		t.Errorf("a program without a description got a resource: %s", out)
	}
}

// TestCheck: names have their forms, and the source is that of the tag, unless it is not to be released.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		identity := []string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}
		if out, err := exec.CommandContext(t.Context(), "git", append(identity, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	expect := func(when, want string, args ...string) {
		t.Helper()
		out, err := script(t, dir, "check.sh", append(args, []string{"v9.8.7", "registry.test:5000/csi-proxy", "https://git.test/o/p"}[len(args):]...)...)
		if (err == nil) != (want == "") || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q, want %q", when, err, out, want)
		}
	}
	expect("no repository", "not a git repository")
	git("init", "-q")
	writeFile(t, filepath.Join(dir, "CHANGELOG.md"), readFile(t, "testdata/changelog.txt"))
	expect("a file that git does not know", "for example 'CHANGELOG.md'; commit them; to make files that are not published, run 'make release UNRELEASED=1'")
	for _, module := range []string{"tools/release", "v2/cmd"} {
		must(t, os.MkdirAll(filepath.Join(dir, module), 0o755))
	}
	writeFile(t, filepath.Join(dir, versionsFile), []byte("v2/cmd v9.8.7\n"))
	writeFile(t, filepath.Join(dir, "v2", "cmd", "go.mod"), []byte("replace example.com/m => ../m\n"))
	commit := func() {
		git("add", ".")
		git("commit", "-q", "-m", "one more")
	}
	commit()
	git("tag", "v9.8.70")
	expect("another tag", "HEAD has no tag v9.8.7;")
	git("tag", "-a", "v9.8.7", "-m", "v9.8.7")
	expect("the tag of a branch", "v2/cmd/go.mod replaces modules; 'make tag'")
	writeFile(t, filepath.Join(dir, "v2", "cmd", "go.mod"), []byte("module example.com/cmd\n"))
	commit()
	git("tag", "--force", "v9.8.7")
	expect("the tag", "")
	secret := filepath.Join(dir, "v2", "cmd", "notes.swp")
	writeFile(t, filepath.Join(dir, ".git", "info", "exclude"), []byte("*.swp\n"))
	writeFile(t, secret, nil)
	expect("a file that git ignores in this clone", "git ignores 'v2/cmd/notes.swp' here only")
	must(t, os.Remove(secret))
	expect("another version", "versions.txt has v9.8.7 for v2/cmd", "v9.9.9")
	writeFile(t, filepath.Join(dir, versionsFile), []byte("v2/cmd v9.9.9\n"))
	commit()
	expect("no notes", "no heading '## [9.9.9] - DATE'", "v9.9.9")
	expect("a commit's name", "want the form v1.4.0", "1f94e68-dirty")
	expect("an image's tag", "without a tag", "v9.8.7", "registry.test/csi-proxy:v1")
	expect("no address", "want the form https://", "v9.8.7", "registry.test/csi-proxy", "github.com/o/p")
	t.Setenv("SIGN_KEY", "key.pem")
	expect("a key only", "a key its certificate")
	t.Setenv("SIGN_KEY", "")
	t.Setenv("UNRELEASED", "1")
	expect("any version", "", "v3.0.0")
}

// TestSign: a signed program passes, and fails as soon as a byte is changed. Without a time server, a second signature
// has the same bytes.
func TestSign(t *testing.T) {
	tool := os.Getenv("OSSLSIGNCODE")
	if tool == "" {
		tool = "osslsigncode"
	}
	if _, err := exec.LookPath(tool); err != nil && os.Getenv("CSI_PROXY_SIGN_REQUIRED") != "" {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("%v; CSI_PROXY_SIGN_REQUIRED=1 makes this a failure", err)
	}
	dir := t.TempDir()
	certificate, program := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "windows_amd64", "csi-proxy.exe")
	buildSmall(t, program)
	unsigned := readFile(t, program)
	verify := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), tool, "verify", "-CAfile", certificate, "-in", program).CombinedOutput()
		return string(out), err
	}
	sign := func() []byte {
		t.Helper()
		writeFile(t, program, unsigned)
		if out, err := script(t, dir, "sign.sh", program); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return readFile(t, program)
	}
	if !bytes.Equal(sign(), unsigned) {
		t.Error("it is signed without a certificate")
	}
	newCertificate(t, certificate, filepath.Join(dir, "key.pem"))
	for name, value := range map[string]string{
		"SIGN_CERT": certificate, "SIGN_KEY": filepath.Join(dir, "key.pem"), "SOURCE_DATE_EPOCH": "1794729600", "HOME_URL": "https://git.test/storage/csi-proxy",
	} {
		t.Setenv(name, value)
	}
	signed := sign()
	if out, err := verify(); err != nil || !strings.Contains(out, "csi-proxy test") || !strings.Contains(out, "https://git.test/storage/csi-proxy") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if !bytes.Equal(sign(), signed) {
		t.Error("the second signature is another one")
	}
	signed[len(signed)/2] ^= 1
	writeFile(t, program, signed)
	if out, err := verify(); err == nil {
		t.Errorf("a changed program passes:\n%s", out)
	}
}

// newCertificate makes a certificate that vouches for itself.
func newCertificate(t *testing.T, certificateFile, keyFile string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "csi-proxy test"},
		NotBefore: time.Now().AddDate(-10, 0, 0), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	writeFile(t, certificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	writeFile(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// TestPinned: what a release is made of is named by what it contains, not by a name that can be moved: actions by
// commit, the base image by digest, Go by its patch.
func TestPinned(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(workflows) == 0 {
		t.Fatal(workflows, err)
	}
	commit := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, workflow := range workflows {
		for line := range strings.Lines(read(filepath.Join(".github", "workflows", filepath.Base(workflow)))) {
			if _, action, found := strings.Cut(strings.TrimSpace(line), "uses: "); found && !commit.MatchString(action) {
				t.Errorf("%s: %s is not named by its commit and version", workflow, action)
			}
		}
	}
	if !regexp.MustCompile(`(?m)^IMAGE_BASE \?= \S+@sha256:[0-9a-f]{64}$`).MatchString(read("Makefile")) {
		t.Error("IMAGE_BASE has no digest")
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go1\.\d+\.\d+$`)
	want := toolchain.FindString(read("go.work"))
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && slices.Contains([]string{"bin", "dist", ".git", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		if err != nil || entry.Name() != "go.mod" {
			return err
		}
		module, err := filepath.Rel(root, filepath.Dir(path))
		if got := toolchain.FindString(read(filepath.Join(module, "go.mod"))); got == "" || got != want {
			t.Errorf("%s has %q, go.work %q", path, got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
