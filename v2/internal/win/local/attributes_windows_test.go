package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// TestAttributesByName compares attributes by name with those of open handles.
func TestAttributesByName(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, `a\b`), 0o700), os.WriteFile(filepath.Join(dir, `a\file`), nil, 0o444)); err != nil {
		t.Fatal(err)
	}
	if !drivesAreLinks() {
		t.Skip("this system would look elsewhere, as Wine 10 does")
	}
	for _, path := range []win.Path{
		{Base: dir},
		{Base: dir, Rest: `a\b`},
		{Base: dir, Rest: `A\FILE`},
		{Base: dir, Rest: `nothing`},
		{Base: dir, Rest: `a\nothing`},
		{Base: dir, Rest: `no\thing`},
		{Base: dir, Rest: `a\file\below`},
		{Base: dir[:len(drive)], Rest: dir[len(drive):]},
	} {
		want, wantErr := askPath(path, fileInfo)
		got, err := attributesByPath(path)
		if got != want || winerr.CodeOf(err) != winerr.CodeOf(wantErr) {
			t.Errorf("%s: by name %+v, %v; a handle %+v, %v", path, got, err, want, wantErr)
		}
	}
	for _, path := range []win.Path{{Base: dir[:len(drive)]}, {Base: `\\server\share`, Rest: "a"}, {Base: dir, Rest: "a\x00"}, {Base: dir, Rest: "a?"}} {
		if info, err := attributesByPath(path); !errors.Is(err, errUnsure) {
			t.Errorf("%q: %+v, %v, although only a handle can show it", path, info, err)
		}
	}
}

// TestAttributesByName_Directory is about names below an open directory other than a root.
func TestAttributesByName_Directory(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "inner"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o444)); err != nil {
		t.Fatal(err)
	}
	handle, err := follow(dir, look)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(handle)
	if !drivesAreLinks() {
		t.Skip("this system would look elsewhere, as Wine 10 does")
	}
	for names, want := range map[string]win.FileInfo{"inner": {Directory: true}, "INNER": {Directory: true}, "file": {ReadOnly: true}} {
		if info, err := attributesByName(handle, names); err != nil || info != want {
			t.Errorf("%s: %+v, %v, want %+v", names, info, err, want)
		}
	}
	for names, want := range map[string]error{"nothing": winerr.FileNotFound, `no\thing`: winerr.PathNotFound, `file\below`: winerr.PathNotFound, "": errUnsure} {
		if _, err := attributesByName(handle, names); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", names, err, want)
		}
	}
}

// TestAttributesByName_Links: attributes are never those of a link or of what it leads to.
func TestAttributesByName_Links(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, `target\inner`), 0o700), os.Symlink(filepath.Join(dir, "target"), link)); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if _, err := os.Lstat(link); err != nil {
		t.Skip("this system says that it makes links, and does not")
	}
	for _, path := range []win.Path{
		{Base: dir, Rest: "link"},
		{Base: dir, Rest: `link\inner`},
		{Base: dir, Rest: `link\nothing`},
		{Base: link},
		{Base: link, Rest: "inner"},
		{Base: link, Rest: "nothing"},
	} {
		if info, err := attributesByPath(path); !errors.Is(err, errUnsure) {
			t.Errorf("%s: %+v, %v, although a link is on the way", path, info, err)
		}
	}
}
