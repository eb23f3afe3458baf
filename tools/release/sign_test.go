package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"debug/pe"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// requiredVariable makes a machine without osslsigncode a failure, for CI.
const requiredVariable = "CSI_PROXY_SIGN_REQUIRED"

// needSigner returns osslsigncode.
func needSigner(t *testing.T) string {
	t.Helper()
	tool, err := osslsigncode()
	if err == nil {
		return tool
	}
	if os.Getenv(requiredVariable) != "" {
		t.Fatal(err)
	}
	t.Skipf("%v; %s=1 makes this a failure", err, requiredVariable)
	return ""
}

// newSigner makes a certificate that vouches for itself, and a signer with it.
func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "csi-proxy test"},
		NotBefore: time.Now().Add(-time.Hour).AddDate(-10, 0, 0), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), crypto.Signer(key))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := signer{certificate: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), date: testDate, home: "https://git.test/storage/csi-proxy"}
	for path, block := range map[string]*pem.Block{
		s.certificate: {Type: "CERTIFICATE", Bytes: certificate},
		s.key:         {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestSign: a release with a certificate has programs for Windows whose signature is right, and
// wrong as soon as a byte is changed. Without a time server a second release has the same bytes.
func TestSign(t *testing.T) {
	tool := needSigner(t)
	r := newRelease(t)
	r.signer = newSigner(t)
	program := filepath.Join(r.dist, "build", "windows_amd64", "csi-proxy.exe")
	unsigned := readFile(t, program)
	if hasSignature(t, unsigned) {
		t.Fatal("it is signed before")
	}
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	signed := readFile(t, program)
	if !hasSignature(t, signed) {
		t.Error("it is not signed")
	}
	verify := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), tool, "verify", "-CAfile", r.signer.certificate, "-in", program).CombinedOutput()
		return string(out), err
	}
	if out, err := verify(); err != nil || !strings.Contains(out, "csi-proxy test") || !strings.Contains(out, r.signer.home) {
		t.Errorf("verify: %v\n%s", err, out)
	}
	first := r.files(t)

	spoiled := bytes.Clone(signed)
	spoiled[len(spoiled)/2] ^= 1
	writeFile(t, program, spoiled)
	if out, err := verify(); err == nil {
		t.Errorf("a changed program passes:\n%s", out)
	}

	writeFile(t, program, unsigned)
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, content := range r.files(t) {
		if content != first[name] {
			t.Errorf("%s is another one the second time", name)
		}
	}
}

// hasSignature reports whether a program has a table of certificates.
func hasSignature(t *testing.T, program []byte) bool {
	t.Helper()
	file, err := pe.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	header, ok := file.OptionalHeader.(*pe.OptionalHeader64)
	return ok && header.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY].Size > 0
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}
