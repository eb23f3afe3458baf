package winsim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Model describes a node. The YAML form has the same fields; see LoadModel.
type Model struct {
	// Seed makes random faults reproducible.
	Seed uint64 `yaml:"seed"`
	// RealTime makes the node wait in real time. Tests leave it off.
	RealTime bool `yaml:"realTime"`
	// Storage is the behaviour of disks and volumes.
	Storage Storage `yaml:"storage"`
	// Disks are the disks of the node, with their partitions and the volumes on them.
	Disks []Disk `yaml:"disks"`
	// Volumes are the volumes that are not a single partition of a disk.
	Volumes []Volume `yaml:"volumes"`
	// ISCSI is the node's iSCSI initiator with its portals and targets.
	ISCSI ISCSI `yaml:"iscsi"`
	// Files are the directories, files and links at the start, created in this order with
	// missing parents.
	Files []File `yaml:"files"`
	// Firmware identifies the machine.
	Firmware Firmware `yaml:"firmware"`
	// Services are the installed services.
	Services []Service `yaml:"services"`
	// SMBServers are the SMB servers that the node can reach.
	SMBServers []SMBServer `yaml:"smbServers"`
}

// Volume is a volume of the node.
type Volume struct {
	// ID is the GUID, alone or as \\?\Volume{GUID}\. The default is the GUID that Windows
	// chooses for the partition. A volume without a partition needs an ID.
	ID string `yaml:"id"`
	// Letter is the drive letter, or empty for a volume without one.
	Letter string `yaml:"letter"`
	// State is empty for a healthy volume.
	State VolumeState `yaml:"state"`
	// FileSystem is the file system; the default is NTFS.
	FileSystem FileSystem `yaml:"fileSystem"`
	// Used is used space in addition to the files.
	Used Size `yaml:"used"`
	// NoShortNames disables 8.3 names, as fsutil 8dot3name set does.
	NoShortNames bool `yaml:"noShortNames"`
	// Files are on the volume at the start. Paths start at its root.
	Files []File `yaml:"files"`

	// Size is the size of a volume without a disk, such as a RAM disk; the default is 10 GiB.
	Size Size `yaml:"size"`
	// Extents are the parts of disks of a volume that spans partitions.
	Extents []Extent `yaml:"extents"`
	// CDROM makes the volume a CD-ROM. Its device number is 0, like that of the first disk.
	CDROM bool `yaml:"cdrom"`
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

func (s VolumeState) known() bool {
	switch s {
	case Healthy, Raw, NotReady, Gone, Locked:
		return true
	default:
		return false
	}
}

// File is one entry of the file tree: a directory, unless another field says otherwise.
type File struct {
	Path        string `yaml:"path"`
	Content     string `yaml:"content"`     // makes it a file with this content
	EmptyFile   bool   `yaml:"emptyFile"`   // makes it a file without content
	Symlink     string `yaml:"symlink"`     // makes it a directory symbolic link to this target
	FileSymlink string `yaml:"fileSymlink"` // makes it a file symbolic link to this target
	Junction    string `yaml:"junction"`    // makes it a junction to this directory
	Volume      string `yaml:"volume"`      // makes it a mounted folder of the volume with this ID
	ReadOnly    bool   `yaml:"readOnly"`    // sets the read-only attribute

	// Tag sets a reparse point of another kind, such as 0x80000013 of a deduplicated file.
	Tag uint32 `yaml:"tag"`
	// TagData is the content of that reparse point after its 8-byte header, in hexadecimal
	// digits. Only links use it; it can be malformed.
	TagData string `yaml:"tagData"`
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

var guid = regexp.MustCompile(`^(?i)(?:\\\\\?\\Volume)?\{?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\}?\\?$`)

// normalGUID returns the bare GUID of a volume ID in lower case, or "".
func normalGUID(id string) string {
	match := guid.FindStringSubmatch(id)
	if match == nil {
		return ""
	}
	return strings.ToLower(match[1])
}

// validate builds what the model describes, or returns an error that names the wrong field.
func (m Model) validate() (objects, error) {
	if err := m.Storage.validate(); err != nil {
		return objects{}, err
	}
	built, err := m.build()
	if err == nil {
		built.services, err = buildServices(built.clock, m.Services)
	}
	if err != nil {
		return objects{}, err
	}
	if built.firmware, err = m.Firmware.build(); err != nil {
		return objects{}, err.in("firmware")
	}
	for i, f := range m.Files {
		if err := f.checkPath(); err != nil {
			return objects{}, problem("path", "%v", err).at("files", i)
		}
		if err := f.validate(func(guid string) bool { return built.volumes.byGUID[guid] != nil }); err != nil {
			return objects{}, err.at("files", i)
		}
	}
	if built.network, err = newNetwork(built.clock, m.SMBServers); err != nil {
		return objects{}, err
	}
	if built.initiator, err = m.ISCSI.build(); err != nil {
		return objects{}, err.in("iscsi")
	}
	built.initiator.clock, built.initiator.services, built.initiator.disks = built.clock, built.services, built.disks
	built.files = &files{clock: built.clock, volumes: built.volumes, network: built.network}
	return built, nil
}

// checkPath accepts clean paths, and any path with \\?\.
func (f File) checkPath() error {
	if strings.HasPrefix(f.Path, `\\?\`) {
		return nil
	}
	return winpath.Validate(f.Path)
}

// validate checks a file except for its path. HasVolume may be nil.
func (f File) validate(hasVolume func(guid string) bool) *ModelError {
	natures := 0
	for _, given := range []bool{f.Content != "", f.EmptyFile, f.Symlink != "", f.FileSymlink != "", f.Junction != "", f.Volume != ""} {
		if given {
			natures++
		}
	}
	switch {
	case natures > 1:
		return problem("path", "%s cannot have more than one of content, emptyFile, symlink, fileSymlink, junction and volume", f.Path)
	case f.Tag != 0 && f.Symlink+f.FileSymlink+f.Junction+f.Volume != "":
		return problem("tag", "a link has a fixed tag; remove tag")
	case f.Tag == 0 && f.TagData != "":
		return problem("tagData", "tag is missing")
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
