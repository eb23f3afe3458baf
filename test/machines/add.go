package machines

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// Limits of what is taken from a zip.
const (
	maxAnswers   = 16 << 20
	maxRecording = 8 << 20
	maxPlain     = 256 << 20 // of a recording that is not compressed
	maxName      = 48
)

// recordings are the files that are kept beside the answers, if they are not too large.
var recordings = []string{"calls.jsonl.gz", "calls.1.jsonl.gz"}

var machineName = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

// Options say how a machine is added.
type Options struct {
	// Name is the name of the machine; if it is empty, its system and build.
	Name string
	// Replace replaces the answers and the recordings of a machine that is there. Its notes stay.
	Replace bool
}

// Add adds the machine of a zip of csi-proxy-verify to a directory. It returns the name of the machine,
// and what was left out. It writes nothing before it has replayed the recordings: nothing is left behind by one
// that cannot be replayed.
func Add(ctx context.Context, dir, zipFile string, o Options) (name string, leftOut []string, err error) {
	archive, err := zip.OpenReader(zipFile)
	if err != nil {
		return "", nil, fmt.Errorf("open the zip: %w", err)
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
	if name = o.Name; name == "" {
		name = nameOf(doc.Machine)
	}
	if err := admit(dir, name, doc.Machine.Kind, o.Replace); err != nil {
		return "", nil, err
	}
	files := map[string][]byte{answersFile: content}
	for _, recording := range recordings {
		if !slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == recording }) {
			continue // a short run has one file
		}
		content, err := member(&archive.Reader, recording, maxRecording)
		if err == nil {
			err = checkRecording(ctx, content)
		}
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
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
	for _, recording := range recordings { // those of an earlier run do not belong to these answers
		if err := os.Remove(filepath.Join(target, recording)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(target, file), content, 0o644); err != nil {
			return "", nil, err
		}
	}
	return name, leftOut, nil
}

// admit checks that a machine may have a name. Nothing from outside replaces the emulator, which the
// others are compared with.
func admit(dir, name string, kind answer.Kind, replace bool) error {
	switch {
	case kind == answer.Emulator:
		return errors.New("the zip says that its machine is the emulator; to update that, run: go test ./test/machines -update")
	case len(name) > maxName || !machineName.MatchString(name):
		return fmt.Errorf("%q is not a name for a machine; use up to %d small letters, digits, hyphens and points", name, maxName)
	case winpath.Validate(`C:\`+name) != nil: // nul, com1.2022
		return fmt.Errorf("%q is the name of a device on Windows; name the machine with -name", name)
	case name == emulator:
		return fmt.Errorf("%s is the name of the emulator; name the machine with -name", name)
	}
	old, err := load(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case old.Answers.Machine.Kind != kind:
		return fmt.Errorf("machine %s is of kind %s, and that of the zip of kind %s; give it another name with -name", name, old.Answers.Machine.Kind, kind)
	case !replace:
		return fmt.Errorf("machine %s exists already; replace it with -replace (make: REPLACE=1), or give this one another name with -name (NAME=name)", name)
	}
	return nil
}

// checkRecording fails unless the content is a compressed recording with calls that can be replayed.
func checkRecording(ctx context.Context, content []byte) error {
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("it is not compressed by gzip: %w", err)
	}
	defer plain.Close()
	limited := &io.LimitedReader{R: plain, N: maxPlain}
	recording, err := record.Read(limited)
	switch {
	case err != nil:
		return err
	case limited.N == 0:
		return fmt.Errorf("the recording has %d bytes or more", maxPlain)
	case recording.Truncated:
		return errors.New("the recording is cut off")
	}
	if err := plain.Reset(bytes.NewReader(content)); err != nil {
		return err
	}
	return replayable(replay.Compare(ctx, plain))
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
	if m.Installation == "Server Core" { // one with a desktop may have the same build
		name += " core"
	}
	if parts := strings.Split(m.Build, "."); len(parts) > 2 {
		name += " " + parts[2]
	}
	if m.Container {
		name += " hostprocess"
	}
	name = strings.Trim(regexp.MustCompile(`[^a-z0-9]*[^a-z0-9.]+[^a-z0-9]*|\.{2,}`).ReplaceAllString(name, "-"), "-.")
	return strings.TrimRight(name[:min(len(name), maxName)], "-.")
}
