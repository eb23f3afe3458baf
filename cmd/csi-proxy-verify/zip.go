package main

import (
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
)

// createZip makes the file that becomes the zip. It replaces none, except the empty one of a killed run.
func createZip(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Lstat(path); statErr != nil || !info.Mode().IsRegular() || info.Size() > 0 {
			return nil, fmt.Errorf("create the zip %s: it exists already; delete it, or name another with -out", path)
		}
		file, err = os.OpenFile(path, os.O_WRONLY, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("create the zip: %w; name another file with -out", err)
	}
	return file, nil
}

// recordings returns the files with recorded calls by their names in a zip. A recording that became too
// large has an older part.
func recordings(recording string) []recorded {
	var found []recorded
	for _, r := range []recorded{{"calls.jsonl.gz", recording}, {"calls.1.jsonl.gz", recording + ".1"}} {
		if _, err := os.Stat(r.path); err == nil {
			found = append(found, r)
		}
	}
	return found
}

type recorded struct{ name, path string }

// rescue keeps the answers in a folder of their own if the zip cannot be written. It always returns an
// error, which says where they are.
func rescue(dir string, began time.Time, doc answer.Document, recording string) error {
	folder := filepath.Join(dir, "answers-"+began.UTC().Format("20060102-150405"))
	content, err := doc.Marshal()
	if err == nil {
		err = os.Mkdir(folder, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "answers.json"), content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the answers in %s: %w", folder, err)
	}
	problems := []error{
		fmt.Errorf("the answers are in %s; add them to a zip yourself", folder),
		os.WriteFile(filepath.Join(folder, "report.md"), []byte(doc.Report()), 0o600),
	}
	for _, r := range recordings(recording) {
		problems = append(problems, os.Rename(r.path, filepath.Join(folder, filepath.Base(r.path))))
	}
	return errors.Join(problems...)
}

// writeZip writes the answers, the report and the recorded calls, and closes the file.
func writeZip(file *os.File, doc answer.Document, recording string) (err error) {
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("write the zip: %w", closed)
		}
	}()
	content, err := doc.Marshal()
	if err != nil {
		return err
	}
	type member struct {
		name  string
		write func(io.Writer) error
	}
	members := []member{
		{"answers.json", func(w io.Writer) error { _, err := w.Write(content); return err }},
		{"report.md", func(w io.Writer) error { _, err := io.WriteString(w, doc.Report()); return err }},
	}
	for _, r := range recordings(recording) {
		members = append(members, member{r.name, func(w io.Writer) error { return compress(w, r.path) }})
	}
	archive := zip.NewWriter(file)
	for _, m := range members {
		if err := add(archive, m.name, m.write); err != nil {
			return fmt.Errorf("write the zip: %s: %w", m.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write the zip: %w", err)
	}
	return nil
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
