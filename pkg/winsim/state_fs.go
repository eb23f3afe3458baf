package winsim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// fileSystemState is a file system with its files.
type fileSystemState struct {
	Kind                           FileSystem
	Sector, Sectors, Cluster, Used int64
	ShortNames                     bool   `json:",omitzero"`
	Label                          string `json:",omitzero"`
	RootAccess                     string `json:",omitzero"`
	// Entries are the root, then each entry after its directory. They are not nested: trees can
	// be deeper than JSON allows.
	Entries []entryState
}

// entryState is a file, directory or stream.
type entryState struct {
	In       int          `json:",omitzero"` // the index of its directory or file
	Name     string       `json:",omitzero"`
	Short    string       `json:",omitzero"`
	Kind     entryKind    `json:",omitzero"`
	ReadOnly bool         `json:",omitzero"`
	Content  []byte       `json:",omitzero"`
	Link     *linkState   `json:",omitzero"`
	Folder   *folderState `json:",omitzero"`
	Changed  time.Time    `json:",omitzero"`
}

type entryKind string

const (
	savedFile      entryKind = ""
	savedDirectory entryKind = "dir"
	savedStream    entryKind = "stream"
)

// linkState is a reparse point.
type linkState struct {
	win.ReparsePoint
	Malformed bool `json:",omitzero"`
	Announced bool `json:",omitzero"`
}

// folderState is a mounted folder that the mount manager knows.
type folderState struct {
	Order int // among all mounted folders
	On    int // the index of its volume
}

// mountedFolders returns the folders that the mount manager knows.
func (s *saver) mountedFolders() map[*entry]folderState {
	folders := map[*entry]folderState{}
	for _, f := range s.node.volumes.mountedFolders {
		if !f.dismantled() {
			folders[f.at] = folderState{Order: len(folders), On: s.volumes.index(f.on)}
		}
	}
	return folders
}

func (s *saver) fileSystem(fs *fileSystem) fileSystemState {
	saved := fileSystemState{
		Kind: fs.kind, Sector: fs.sector, Sectors: fs.sectors, Cluster: fs.cluster, Used: fs.used,
		ShortNames: fs.shortNames, Label: fs.label, RootAccess: fs.rootAccess,
	}
	entries := []*entry{fs.root}
	saved.Entries = []entryState{s.entry(fs.root, 0)}
	for at := 0; at < len(entries); at++ {
		for _, inside := range []map[string]*entry{entries[at].streams, entries[at].children} {
			for _, key := range slices.Sorted(maps.Keys(inside)) {
				entries = append(entries, inside[key])
				saved.Entries = append(saved.Entries, s.entry(inside[key], at))
			}
		}
	}
	return saved
}

func (s *saver) entry(e *entry, in int) entryState {
	saved := entryState{In: in, Name: e.name, Short: e.shortName, ReadOnly: e.readOnly, Content: e.content, Changed: e.changedAt}
	switch {
	case e.isStream:
		saved.Kind = savedStream
	case e.children != nil:
		saved.Kind = savedDirectory
	}
	if e.link != nil {
		saved.Link = &linkState{e.link.ReparsePoint, e.link.malformed, e.link.announced}
	}
	if folder, ok := s.folders[e]; ok {
		saved.Folder = &folder
	}
	return saved
}

func (l *loader) fileSystem(saved fileSystemState) (*fileSystem, error) {
	fs := &fileSystem{
		kind: saved.Kind, sector: saved.Sector, sectors: saved.Sectors, cluster: saved.Cluster, used: saved.Used,
		shortNames: saved.ShortNames, label: saved.Label, rootAccess: saved.RootAccess,
	}
	if err := oneOf("fileSystem", fs.kind, NTFS, ReFS, FAT32, CDFS); err != nil || fs.kind == "" || fs.sector <= 0 || fs.cluster <= 0 {
		return nil, fmt.Errorf("unknown file system %q", fs.kind)
	}
	if len(saved.Entries) == 0 || saved.Entries[0].Kind != savedDirectory {
		return nil, errors.New("a file system has no root")
	}
	entries := make([]*entry, 0, len(saved.Entries))
	for i, s := range saved.Entries {
		e := &entry{name: s.Name, readOnly: s.ReadOnly, content: s.Content, changedAt: s.Changed}
		if s.Link != nil {
			e.link = &link{ReparsePoint: s.Link.ReparsePoint, malformed: s.Link.Malformed, announced: s.Link.Announced}
		}
		if s.Kind == savedDirectory {
			e.children = map[string]*entry{}
		}
		if i > 0 {
			if s.In < 0 || s.In >= i {
				return nil, fmt.Errorf("file %q has no parent directory", s.Name)
			}
			if err := entries[s.In].restoreChild(e, s); err != nil {
				return nil, err
			}
		}
		if s.Folder != nil && e.link != nil {
			l.folders = append(l.folders, loadedFolder{*s.Folder, e})
		}
		entries = append(entries, e)
	}
	fs.root = entries[0]
	return fs, nil
}

// restoreChild adds a saved entry.
func (e *entry) restoreChild(child *entry, saved entryState) error {
	child.parent = e
	switch key := winpath.Fold(saved.Name); {
	case saved.Kind == savedStream:
		child.isStream = true
		if e.streams == nil {
			e.streams = map[string]*entry{}
		}
		e.streams[key] = child
	case e.children == nil || checkName(saved.Name) != nil:
		return fmt.Errorf("file %q has no parent directory", saved.Name)
	default:
		e.children[key] = child
		e.giveShortName(child, saved.Short)
	}
	return nil
}

// loadedFolder is a mounted folder to register with the mount manager.
type loadedFolder struct {
	folderState
	at *entry
}

// mountedFolders restores the folders that the mount manager knew.
func (l *loader) mountedFolders() ([]mountedFolder, error) {
	slices.SortFunc(l.folders, func(a, b loadedFolder) int { return a.Order - b.Order })
	var folders []mountedFolder
	for _, f := range l.folders {
		on, err := pick(l.volumes, f.On)
		if err != nil {
			return nil, err
		}
		folders = append(folders, newMountedFolder(on, f.at))
	}
	return folders, nil
}
