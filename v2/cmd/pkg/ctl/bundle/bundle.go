// Package bundle collects what support asks for in one zip file. A part that fails does not stop the
// others. What looks like a secret is removed from all of them.
package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

const (
	// PartTimeout is how long one part may take. A daemon that hangs must not cost all the time.
	PartTimeout = 20 * time.Second
	// MaxPart is the largest size of a part. Of a log, the end is kept.
	MaxPart = 4 << 20
)

// Part is a file of the bundle that is to be made.
type Part struct {
	Name string // of the file
	What string // it contains, for people
	// Clean says that Make removes secrets itself: what has a form of its own, such as JSON, would lose it.
	Clean bool
	// Make returns the content. Content with an error is kept, and the error is listed.
	Make func(ctx context.Context) ([]byte, error)
}

// make is Make. A mistake in one part must not cost the others.
func (p Part) make(ctx context.Context) (content []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			content, err = nil, fmt.Errorf("internal error: %v", cause)
		}
	}()
	return p.Make(ctx)
}

// File is a file of the bundle, or why it is not there.
type File struct {
	Name, What string
	Content    []byte // nil if there is none
	Problem    string
	clean      bool
}

// Collect makes the parts, all at once, so that a node that hangs costs the time of one part, and calls begin for each. It
// never fails: the problem of a part is in its file.
func Collect(ctx context.Context, parts []Part, begin func(Part)) []File {
	files := make([]File, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		begin(part)
		all.Go(func() { files[i] = part.file(ctx) })
	}
	all.Wait()
	return files
}

func (p Part) file(ctx context.Context) File {
	file := File{Name: p.Name, What: p.What, clean: p.Clean}
	ctx, cancel := context.WithTimeout(ctx, PartTimeout)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		file.Content, err = p.make(ctx)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		file.Problem = "it took too long"
	case err != nil:
		file.Problem = strings.TrimSpace(err.Error())
	case len(file.Content) == 0:
		file.Problem = "it is empty"
	}
	if len(file.Content) > MaxPart {
		file.Content = file.Content[:MaxPart]
		file.Problem = strings.TrimPrefix(file.Problem+"; the rest is cut off", "; ")
	}
	return file
}

// Clean removes secrets from files.
func Clean(files []File) {
	for i := range files {
		file := &files[i]
		file.Problem = RemoveSecrets(file.Problem)
		if file.clean {
			continue
		}
		// Without the zeros, a log in UTF-16, as PowerShell writes it, is text.
		before := strings.ReplaceAll(string(file.Content), "\x00", "")
		if !isText(before) {
			file.Content, file.Problem = nil, "it is left out, because it is not text: secrets in it could not be found"
			continue
		}
		after := RemoveSecrets(before)
		file.Content = []byte(after)
		if after == "" {
			file.Content = nil
		}
	}
}

// isText reports whether at most a tenth of a content is neither UTF-8 nor printed. Old code pages have a few such bytes.
func isText(content string) bool {
	odd := 0
	for _, r := range content {
		if r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\t\n\f\r\x1b", r) {
			odd++
		}
	}
	return odd*10 <= len(content)
}

const directory = "support-bundle"

// Contents lists the files with their sizes, and those that are not there with the reason.
func Contents(files []File) string {
	var there, missing strings.Builder
	for _, file := range files {
		if file.Content == nil {
			fmt.Fprintf(&missing, "  %-14s %s: %s\n", file.Name, file.What, oneLine(file.Problem))
			continue
		}
		fmt.Fprintf(&there, "  %-14s %10s  %s", file.Name, printable.Size(int64(len(file.Content))), file.What)
		if file.Problem != "" {
			fmt.Fprintf(&there, " (%s)", oneLine(file.Problem))
		}
		there.WriteByte('\n')
	}
	text := "In the bundle:\n" + there.String()
	if missing.Len() > 0 {
		text += "Not in the bundle:\n" + missing.String()
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Write writes the bundle, with the contents as its first file.
func Write(w io.Writer, files []File, remark string, now time.Time) error {
	contents := File{Name: "contents.txt", Content: []byte(Contents(files) + remark)}
	archive := zip.NewWriter(w)
	for _, file := range append([]File{contents}, files...) {
		if file.Content == nil {
			continue
		}
		to, err := archive.CreateHeader(&zip.FileHeader{Name: path.Join(directory, file.Name), Method: zip.Deflate, Modified: now})
		if err != nil {
			return err
		}
		if _, err := io.Copy(to, bytes.NewReader(file.Content)); err != nil {
			return err
		}
	}
	return archive.Close()
}
