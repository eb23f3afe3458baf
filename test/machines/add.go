package machines

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
)

// Limits of what is taken from a zip.
const (
	maxAnswers   = 16 << 20
	maxRecording = 8 << 20
)

// recordings are the files that are kept beside the answers, if they are not too large.
var recordings = []string{"calls.jsonl.gz", "calls.1.jsonl.gz"}

var machineName = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

// Add adds the machine of a zip of csi-proxy-verify to a directory, or replaces its answers. Without
// a name it goes by its system and build. It returns the name, and what was left out.
func Add(dir, zipFile, name string) (_ string, leftOut []string, err error) {
	archive, err := zip.OpenReader(zipFile)
	if err != nil {
		return "", nil, fmt.Errorf("open %s: %w", zipFile, err)
	}
	defer archive.Close()
	content, err := member(&archive.Reader, answersFile, maxAnswers)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w; is it from csi-proxy-verify?", zipFile, err)
	}
	doc, err := answer.Parse(content)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", zipFile, err)
	}
	if name == "" {
		name = nameOf(doc.Machine)
	}
	if !machineName.MatchString(name) {
		return "", nil, fmt.Errorf("%q is not a name for a machine; use small letters, digits, hyphens and points", name)
	}
	files := map[string][]byte{answersFile: content}
	for _, recording := range recordings {
		if !slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == recording }) {
			continue // a short run has one file
		}
		content, err := member(&archive.Reader, recording, maxRecording)
		if err != nil {
			leftOut = append(leftOut, fmt.Sprintf("%s: %v", recording, err))
			continue
		}
		files[recording] = content
	}
	target := filepath.Join(dir, name)
	if err := os.MkdirAll(target, 0o755); err != nil { //nolint:gosec // as git makes directories
		return "", nil, err
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(target, file), content, 0o644); err != nil {
			return "", nil, err
		}
	}
	return name, leftOut, nil
}

// member reads a file of an archive.
func member(archive *zip.Reader, name string, limit int64) ([]byte, error) {
	i := slices.IndexFunc(archive.File, func(f *zip.File) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("it has no %s", name)
	}
	file, err := archive.File[i].Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return content, err
}

// nameOf is a name such as windows-server-2022-20348.
func nameOf(m answer.Machine) string {
	name := strings.ToLower(m.System)
	for _, edition := range []string{"datacenter", "standard", "azure edition"} {
		name = strings.ReplaceAll(name, edition, "")
	}
	if parts := strings.Split(m.Build, "."); len(parts) > 2 {
		name += " " + parts[2]
	}
	if m.Container {
		name += " hostprocess"
	}
	return strings.Trim(regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(name, "-"), "-.")
}
