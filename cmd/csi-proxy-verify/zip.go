package main

import (
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
)

// writeZip writes the answers, the report and the recorded calls.
func writeZip(path string, doc answer.Document, recording string) (err error) {
	content, err := doc.Marshal()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the zip: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("write the zip: %w", closed)
		}
	}()
	type member struct {
		name  string
		write func(io.Writer) error
	}
	members := []member{
		{"answers.json", func(w io.Writer) error { _, err := w.Write(content); return err }},
		{"report.md", func(w io.Writer) error { _, err := io.WriteString(w, doc.Report()); return err }},
	}
	// A recording that became too large has an older part.
	for name, path := range map[string]string{"calls.jsonl.gz": recording, "calls.1.jsonl.gz": recording + ".1"} {
		if _, err := os.Stat(path); err == nil {
			members = append(members, member{name, func(w io.Writer) error { return compress(w, path) }})
		}
	}
	archive := zip.NewWriter(file)
	for _, m := range members {
		if err := add(archive, m.name, m.write); err != nil {
			return fmt.Errorf("write the zip: %s: %w", m.name, err)
		}
	}
	return archive.Close()
}

func add(archive *zip.Writer, name string, write func(io.Writer) error) error {
	w, err := archive.Create(name)
	if err != nil {
		return err
	}
	return write(w)
}

func compress(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	compressed := gzip.NewWriter(w)
	if _, err := io.Copy(compressed, file); err != nil {
		return err
	}
	return compressed.Close()
}
