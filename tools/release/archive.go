package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	_ "embed"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string // with slashes
	mode    fs.FileMode
	content []byte
}

// readme is the README of the archives. The repository's has links to files that are not in them.
//
//go:embed archive.md
var readme []byte

// archives writes an archive per platform: zip for Windows, tar.gz for others. Its files are in a
// directory with the archive's name.
func (r *release) archives(programs []program, notices []byte) error {
	texts := []entry{
		{noticesFile, 0o644, notices},
		{"README.md", 0o644, bytes.ReplaceAll(readme, []byte("VERSION"), []byte(r.version))},
	}
	for _, name := range []string{"LICENSE", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return err
		}
		texts = append(texts, entry{name, 0o644, content})
	}
	platforms := map[string][]entry{}
	for _, p := range programs {
		content, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		platforms[p.platform] = append(platforms[p.platform], entry{p.name(), 0o755, content})
	}
	for platform, entries := range platforms {
		entries = append(entries, texts...)
		for i := range entries {
			entries[i].name = r.name("_"+platform) + "/" + entries[i].name
		}
		pack, suffix := tarball, ".tar.gz"
		if strings.HasPrefix(platform, "windows_") {
			pack, suffix = zipball, ".zip"
		}
		packed, err := pack(entries, r.date)
		if err != nil {
			return err
		}
		if err := r.write(r.name("_"+platform+suffix), packed); err != nil {
			return err
		}
	}
	return nil
}

// byName returns the entries sorted by name, so that the order does not depend on the file system.
func byName(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
}

// zipball packs files, all with the same date and without an owner.
func zipball(entries []entry, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, e := range byName(entries) {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: date.UTC()}
		header.SetMode(e.mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

// tarball packs files, all with the same date and owned by root.
func tarball(entries []entry, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out) // without a name and a date
	archive := tar.NewWriter(compressed)
	for _, e := range byName(entries) {
		err := archive.WriteHeader(&tar.Header{
			Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: date.UTC().Truncate(time.Second),
			Uname: "root", Gname: "root", Format: tar.FormatUSTAR,
		})
		if err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return out.Bytes(), err
}
