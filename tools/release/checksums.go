package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// checksumsFile is in the format of "sha256sum --check".
const checksumsFile = "SHA256SUMS"

// writeChecksums writes the checksums of all files of a directory.
func writeChecksums(dir string) error {
	found, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, file := range found {
		if file.IsDir() || file.Name() == checksumsFile {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), file.Name())
	}
	return os.WriteFile(filepath.Join(dir, checksumsFile), out.Bytes(), 0o644)
}
