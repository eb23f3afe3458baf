package winsim

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Model describes a node. All fields are optional. The YAML form has the same fields; see LoadModel.
type Model struct {
	// Seed makes random faults reproducible.
	Seed uint64 `yaml:"seed" json:"seed,omitzero"`
	// RealTime makes the node wait in real time. Tests leave it off; csi-proxy-sim always sets it.
	RealTime bool `yaml:"realTime" json:"realTime,omitzero"`
	// Storage is the behaviour of disks and volumes, with delays and oddities to choose from.
	Storage Storage `yaml:"storage" json:"storage,omitzero"`
	// Disks are the disks of the node, with their partitions and the volumes on them.
	Disks []Disk `yaml:"disks" json:"disks,omitzero"`
	// Volumes are the volumes that are not a single partition of a disk. Those without a disk, as RAM disks, can be
	// mounted, but neither formatted nor grown.
	Volumes []Volume `yaml:"volumes" json:"volumes,omitzero"`
	// ISCSI is the node's iSCSI initiator with its portals and targets.
	ISCSI ISCSI `yaml:"iscsi" json:"iscsi,omitzero"`
	// Files are the directories, files and links at the start, created in this order with missing parents, after the
	// files of volumes. They need a volume with a drive letter.
	Files []File `yaml:"files" json:"files,omitzero"`
	// Firmware identifies the machine.
	Firmware Firmware `yaml:"firmware" json:"firmware,omitzero"`
	// Services are the installed services.
	Services []Service `yaml:"services" json:"services,omitzero"`
	// SMBServers are the SMB servers that the node can reach.
	SMBServers []SMBServer `yaml:"smbServers" json:"smbServers,omitzero"`
	// SMBAlwaysPersistent is a build of Windows whose MSFT_SmbGlobalMapping.Create has no parameter
	// Persistent: a restart leaves every mapping, without its credentials.
	SMBAlwaysPersistent bool `yaml:"smbAlwaysPersistent" json:"smbAlwaysPersistent,omitzero"`
	// SMBMappings are the global mappings; see also SMBShare.MappedFor.
	SMBMappings []SMBMapping `yaml:"smbMappings" json:"smbMappings,omitzero"`
	// Running makes it the model of a node that runs already, see Node.Model: nothing starts, and
	// every field says what is now. Many fields of other types are only for such a model.
	Running *Running `yaml:"running" json:"running,omitzero"`
}

// Volume is a volume of the node.
type Volume struct {
	// ID is the GUID, alone or as \\?\Volume{GUID}\. The default is the GUID that Windows
	// chooses for the partition. A volume without a partition needs an ID.
	ID string `yaml:"id" json:"id,omitzero"`
	// Letter is the drive letter, or empty for a volume without one.
	Letter string `yaml:"letter" json:"letter,omitzero"`
	// State is empty for a healthy volume.
	State VolumeState `yaml:"state" json:"state,omitzero"`
	// FileSystem is the file system; the default is NTFS.
	FileSystem FileSystem `yaml:"fileSystem" json:"fileSystem,omitzero"`
	// Used is used space in addition to the files.
	Used Size `yaml:"used" json:"used,omitzero"`
	// NoShortNames disables 8.3 names, as fsutil 8dot3name set does. By default NTFS and FAT32 have them.
	NoShortNames bool `yaml:"noShortNames" json:"noShortNames,omitzero"`
	// Files are on the volume at the start. Paths start at its root.
	Files []File `yaml:"files" json:"files,omitzero"`

	// Size is the size of a volume without a disk, such as a RAM disk; the default is 10 GiB.
	Size Size `yaml:"size" json:"size,omitzero"`
	// Extents are the parts of disks of a volume that spans partitions.
	Extents []Extent `yaml:"extents" json:"extents,omitzero"`
	// CDROM makes the volume a CD-ROM. Its device number is 0, like that of the first disk.
	CDROM bool `yaml:"cdrom" json:"cdrom,omitzero"`

	// Label, ClusterSize and RootAccess, in SDDL, are of the file system; the defaults are those of
	// a new one. FileSystemSize is its size; the default is that of the volume.
	Label          string `yaml:"label" json:"label,omitzero"`
	ClusterSize    Size   `yaml:"clusterSize" json:"clusterSize,omitzero"`
	RootAccess     string `yaml:"rootAccess" json:"rootAccess,omitzero"`
	FileSystemSize Size   `yaml:"fileSystemSize" json:"fileSystemSize,omitzero"`

	// The fields below are for a running node. The volume is Absent, or has Arrived at that time
	// and may be in the cache of the storage service. Automount may have left it Offline, or
	// Nameless too. Another volume may have its ID or letter while it is absent.
	Absent         bool      `yaml:"absent" json:"absent,omitzero"`
	Arrived        time.Time `yaml:"arrived" json:"arrived,omitzero"`
	InServiceCache bool      `yaml:"inServiceCache" json:"inServiceCache,omitzero"`
	LogOpen        bool      `yaml:"logOpen" json:"logOpen,omitzero"` // see Disk.LogOpened
	Offline        bool      `yaml:"offline" json:"offline,omitzero"`
	Nameless       bool      `yaml:"nameless" json:"nameless,omitzero"`
	IDTaken        bool      `yaml:"idTaken" json:"idTaken,omitzero"`
	LetterTaken    bool      `yaml:"letterTaken" json:"letterTaken,omitzero"`
	Pending        []Event   `yaml:"pending" json:"pending,omitzero"`
	// Bytes are the content of a volume without a disk.
	Bytes []Bytes `yaml:"bytes" json:"bytes,omitzero"`
}

// FileSystem is the name of a file system.
type FileSystem string

// The file systems. FileSystemNone means an unrecognised one.
const (
	NTFS           FileSystem = "ntfs"
	ReFS           FileSystem = "refs"
	FAT32          FileSystem = "fat32"
	CDFS           FileSystem = "cdfs"
	FileSystemNone FileSystem = "raw"
)

// VolumeState is how a volume answers an access.
type VolumeState string

// The states of a volume.
const (
	Healthy  VolumeState = ""
	Raw      VolumeState = "raw"       // no recognised file system: ERROR_UNRECOGNIZED_VOLUME (1005)
	NotReady VolumeState = "not-ready" // offline or dying: ERROR_NOT_READY (21)
	Gone     VolumeState = "gone"      // missing, but still referred to: ERROR_FILE_NOT_FOUND (2)
	Locked   VolumeState = "locked"    // by BitLocker: FVE_E_LOCKED_VOLUME (0x80310000)
)

func (s VolumeState) check() *ModelError { return oneOf("state", s, Raw, NotReady, Gone, Locked) }

// File is one entry of the file tree: a directory, unless one of Content, EmptyFile, Hex, Symlink, FileSymlink, Junction
// and Volume says otherwise.
type File struct {
	// Path is absolute, with backslashes, or begins at the root of its volume or share. Links in it are followed. With
	// the prefix \\?\ it can have names such as NUL or dir.
	Path        string `yaml:"path" json:"path,omitzero"`
	Content     string `yaml:"content" json:"content,omitzero"`         // makes it a file with this content
	EmptyFile   bool   `yaml:"emptyFile" json:"emptyFile,omitzero"`     // makes it a file without content
	Symlink     string `yaml:"symlink" json:"symlink,omitzero"`         // makes it a directory symbolic link to this target
	FileSymlink string `yaml:"fileSymlink" json:"fileSymlink,omitzero"` // makes it a file symbolic link to this target
	Junction    string `yaml:"junction" json:"junction,omitzero"`       // makes it a junction to this directory
	Volume      string `yaml:"volume" json:"volume,omitzero"`           // makes it a mounted folder of the volume with this ID
	ReadOnly    bool   `yaml:"readOnly" json:"readOnly,omitzero"`       // sets the read-only attribute

	// Tag sets a reparse point of another kind, such as 0x80000013 of a deduplicated file. With the name surrogate bit
	// (0x20000000) it is a link that cannot be followed.
	Tag uint32 `yaml:"tag" json:"tag,omitzero"`
	// TagData is the content of that reparse point after its 8-byte header, in hexadecimal
	// digits. Only the tags of links, 0xa000000c and 0xa0000003, use it; it can be malformed.
	TagData string `yaml:"tagData" json:"tagData,omitzero"`

	// Hex is Content in hexadecimal digits.
	Hex string `yaml:"hex" json:"hex,omitzero"`
	// Short is the 8.3 name, instead of the one that Windows would give.
	Short string `yaml:"short" json:"short,omitzero"`
	// In makes Path a single name in the directory that is the In-th of this list, counted from 1.
	// The root of a volume is \.
	In int `yaml:"in" json:"in,omitzero"`
	// Stream makes it a named stream of the file or directory In.
	Stream bool `yaml:"stream" json:"stream,omitzero"`
	// Changed is when it was created or last changed, if the node ran then.
	Changed time.Time `yaml:"changed" json:"changed,omitzero"`
	// Mounted is the place of a mounted folder in the mount manager's list, from 1; 0 if the
	// manager does not know it.
	Mounted int `yaml:"mounted" json:"mounted,omitzero"`
}

// ModelError names the wrong field of a model or list of faults.
type ModelError struct {
	File    string // the file name, if loaded from YAML
	Line    int    // 0 if not loaded from YAML
	Field   string // such as files[2].symlink; empty for a syntax error
	Problem string
}

func (e *ModelError) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "%s: ", e.Field)
	}
	b.WriteString(e.Problem)
	return b.String()
}

func field(list string, i int, name string) string {
	return fmt.Sprintf("%s[%d].%s", list, i, name)
}

// problem returns the error of a field, relative to the caller's struct.
func problem(field, format string, args ...any) *ModelError {
	return &ModelError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// in adds the name of the outer struct.
func (e *ModelError) in(outer string) *ModelError {
	e.Field = outer + "." + e.Field
	return e
}

// at adds the name of the outer list.
func (e *ModelError) at(list string, i int) *ModelError {
	return e.in(fmt.Sprintf("%s[%d]", list, i))
}

// normalGUID returns the bare GUID of a volume ID in lower case, or "". It runs in most calls about volumes.
func normalGUID(id string) string {
	const prefix = `\\?\Volume`
	id = strings.TrimSuffix(id, `\`)
	if len(id) > len(prefix) && winpath.Equal(id[:len(prefix)], prefix) {
		id = id[len(prefix):]
	}
	if _, err := win.ParseGUID(id); err != nil {
		return ""
	}
	return strings.ToLower(strings.Trim(id, "{}"))
}

// validate builds what the model describes, or returns an error that names the wrong field.
func (m Model) validate() (objects, error) {
	if err := m.Storage.validate(); err != nil {
		return objects{}, err
	}
	var now *resumption
	if m.Running != nil {
		now = &resumption{}
	}
	built, err := m.build(now)
	if err == nil {
		built.services, err = buildServices(built.clock, m.Services, now)
	}
	if err != nil {
		return objects{}, err
	}
	if built.firmware, err = m.Firmware.build(); err != nil {
		return objects{}, err.in("firmware")
	}
	for i, f := range m.Files {
		if err := winpath.Validate(f.Path); err != nil && !strings.HasPrefix(f.Path, `\\?\`) {
			return objects{}, problem("path", "%v", err).at("files", i)
		}
		if err := f.validate(func(guid string) bool { return built.volumes.byGUID[guid] != nil }); err != nil {
			return objects{}, err.at("files", i)
		}
	}
	if built.network, err = newNetwork(built.clock, m, now); err != nil {
		return objects{}, err
	}
	if built.initiator, err = m.ISCSI.build(built, now); err != nil {
		return objects{}, err.in("iscsi")
	}
	if now != nil {
		if err := now.finish(built, *m.Running); err != nil {
			return objects{}, err
		}
	}
	built.files = &files{clock: built.clock, volumes: built.volumes, network: built.network}
	return built, nil
}

// validate checks a file except for its path. HasVolume may be nil.
func (f File) validate(hasVolume func(guid string) bool) *ModelError {
	natures := 0
	for _, given := range []bool{f.Content != "", f.EmptyFile, f.Hex != "", f.Symlink != "", f.FileSymlink != "", f.Junction != "", f.Volume != ""} {
		if given {
			natures++
		}
	}
	switch {
	case natures > 1:
		return problem("path", "%s cannot have more than one of content, emptyFile, hex, symlink, fileSymlink, junction and volume", f.Path)
	case f.Tag != 0 && f.Symlink+f.FileSymlink+f.Junction+f.Volume != "":
		return problem("tag", "a link has a fixed tag; remove tag")
	case f.Short != "" && !fits8dot3(f.Short):
		return problem("short", "%q is not an 8.3 name", f.Short)
	case f.Tag == 0 && f.TagData != "":
		return problem("tagData", "tag is missing")
	}
	if _, err := hex.DecodeString(f.Hex); err != nil {
		return problem("hex", "%.40q is not a string of hexadecimal bytes", f.Hex)
	}
	if _, err := taggedLink(win.ReparseTag(f.Tag), f.TagData); err != nil {
		return err
	}
	if f.Junction != "" && !strings.HasPrefix(f.Junction, `\\?\`) {
		if err := winpath.Validate(f.Junction); err != nil {
			return problem("junction", "%v", err)
		}
	}
	if f.Volume != "" && hasVolume != nil && !hasVolume(normalGUID(f.Volume)) {
		return problem("volume", "%q is not a volume of the node; for a missing volume add one with state %q", f.Volume, Gone)
	}
	return nil
}
