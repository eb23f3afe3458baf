package winsim

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/strictyaml"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Model describes a node. All fields are optional.
//
// In YAML, which LoadModel reads, a field has the name in its yaml tag. Sizes are numbers of bytes, or have a unit:
// 512MiB. Durations are written as 50ms, 2s, 1m. A backslash is literal, except in double quotes.
type Model struct {
	Seed                uint64       `yaml:"seed"`                // makes random faults reproducible
	RealTime            bool         `yaml:"realTime"`            // makes the node wait in real time. Tests leave it off; csi-proxy-sim always sets it.
	Storage             Storage      `yaml:"storage"`             // the behaviour of disks and volumes, with delays and oddities to choose from
	Disks               []Disk       `yaml:"disks"`               // the disks of the node, with their partitions and the volumes on them
	Volumes             []Volume     `yaml:"volumes"`             // those that are not a single partition. Without a disk, as a RAM disk, one can be mounted only.
	ISCSI               ISCSI        `yaml:"iscsi"`               // the node's iSCSI initiator with its portals and targets
	Files               []File       `yaml:"files"`               // created in this order, with missing parents, after the files of volumes
	Firmware            Firmware     `yaml:"firmware"`            // identifies the machine
	Services            []Service    `yaml:"services"`            // the installed services
	SMBServers          []SMBServer  `yaml:"smbServers"`          // the SMB servers that the node can reach
	SMBAlwaysPersistent bool         `yaml:"smbAlwaysPersistent"` // a build of Windows on which every mapping is persistent
	SMBMappings         []SMBMapping `yaml:"smbMappings"`         // the global mappings; see also SMBShare.MappedFor
}

// Volume is a volume of the node.
type Volume struct {
	ID         string      `yaml:"id"`         // the GUID, alone or as \\?\Volume{GUID}\; by default the one that Windows chooses for the partition
	Letter     string      `yaml:"letter"`     // the drive letter, or empty for a volume without one
	State      VolumeState `yaml:"state"`      // empty for a healthy volume
	FileSystem FileSystem  `yaml:"fileSystem"` // the file system; the default is NTFS
	Used       Size        `yaml:"used"`       // used space in addition to the files
	Files      []File      `yaml:"files"`      // on the volume at the start. Paths start at its root.

	Size    Size     `yaml:"size"`    // the size of a volume without a disk, such as a RAM disk; the default is 10 GiB
	Extents []Extent `yaml:"extents"` // the parts of disks of a volume that spans partitions
	CDROM   bool     `yaml:"cdrom"`   // makes the volume a CD-ROM. Its device number is 0, like that of the first disk.

	// Label, ClusterSize, RootAccess, in SDDL, and FileSystemSize are of the file system; the default is a new one.
	Label          string `yaml:"label"`
	ClusterSize    Size   `yaml:"clusterSize"`
	RootAccess     string `yaml:"rootAccess"`
	FileSystemSize Size   `yaml:"fileSystemSize"`
	Damage         Damage `yaml:"damage"` // what is wrong with the file system

	Hidden bool `yaml:"hidden"` // Windows does not show the volume; only descriptions have it
}

// FileSystem is the name of a file system; FileSystemNone is an unrecognised one.
type FileSystem string

const (
	NTFS           FileSystem = "ntfs"
	ReFS           FileSystem = "refs"
	FAT32          FileSystem = "fat32"
	CDFS           FileSystem = "cdfs"
	FileSystemNone FileSystem = "raw"
)

// VolumeState is how a volume answers an access.
type VolumeState string

const (
	Healthy  VolumeState = ""
	Raw      VolumeState = "raw"       // no recognised file system: ERROR_UNRECOGNIZED_VOLUME (1005)
	NotReady VolumeState = "not-ready" // offline or dying: ERROR_NOT_READY (21)
	Gone     VolumeState = "gone"      // missing, but still referred to: ERROR_FILE_NOT_FOUND (2)
	Locked   VolumeState = "locked"    // by BitLocker: FVE_E_LOCKED_VOLUME (0x80310000)
)

func (s VolumeState) check() *ModelError { return oneOf("state", s, Raw, NotReady, Gone, Locked) }

// File is one entry of the file tree: a directory, unless a field says otherwise.
type File struct {
	Path        string `yaml:"path"`        // absolute, or begins at the root of its volume or share. With the prefix \\?\ it can have names such as NUL.
	Content     string `yaml:"content"`     // makes it a file with this content
	EmptyFile   bool   `yaml:"emptyFile"`   // makes it a file without content
	Symlink     string `yaml:"symlink"`     // makes it a directory symbolic link to this target
	FileSymlink string `yaml:"fileSymlink"` // makes it a file symbolic link to this target
	Junction    string `yaml:"junction"`    // makes it a junction to this directory
	Volume      string `yaml:"volume"`      // makes it a mounted folder of the volume with this ID
	ReadOnly    bool   `yaml:"readOnly"`    // sets the read-only attribute

	Tag     uint32 `yaml:"tag"`     // sets a reparse point of another kind. With 0x20000000 it is a link that cannot be followed.
	TagData string `yaml:"tagData"` // its content in hexadecimal digits, for 0xa000000c and 0xa0000003. It can be malformed.

	Hex   string `yaml:"hex"`   // content in hexadecimal digits
	Short string `yaml:"short"` // the 8.3 name, instead of the one that Windows would give
}

// ModelError names the wrong field of a model or list of faults.
type ModelError struct {
	File    string // the file name, if loaded from YAML
	Line    int    // 0 if not loaded from YAML
	Field   string // such as files[2].symlink; empty for a syntax error
	Problem string
}

func (e *ModelError) Error() string { return (*strictyaml.Error)(e).Error() }

func field(list string, i int, name string) string {
	return fmt.Sprintf("%s[%d].%s", list, i, name)
}

// problem returns the error of a field, relative to the caller's struct.
func problem(field, format string, args ...any) *ModelError {
	return &ModelError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

func (e *ModelError) in(outer string) *ModelError {
	e.Field = outer + "." + e.Field
	return e
}

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
		if err := winpath.Validate(f.Path); err != nil && !strings.HasPrefix(f.Path, `\\?\`) {
			return objects{}, problem("path", "%v", err).at("files", i)
		}
		if err := f.validate(func(guid string) bool { return built.volumes.byGUID[guid] != nil }); err != nil {
			return objects{}, err.at("files", i)
		}
	}
	if built.network, err = newNetwork(built.clock, m); err != nil {
		return objects{}, err
	}
	if built.initiator, err = m.ISCSI.build(built); err != nil {
		return objects{}, err.in("iscsi")
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
