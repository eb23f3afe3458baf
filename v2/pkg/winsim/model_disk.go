package winsim

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Disk is a disk of the node.
type Disk struct {
	Number     uint32 `yaml:"number"`     // the N of \\.\PhysicalDriveN. Disks without one, or with 0, get the lowest free numbers in their order.
	Size       Size   `yaml:"size"`       // required: a multiple of 4096 bytes, from 1 MiB to 1024 TiB
	GrowsTo    Size   `yaml:"growsTo"`    // the size of the disk after a format; 0 means that it does not grow
	SectorSize uint32 `yaml:"sectorSize"` // 512, the default, or 4096
	Bus        Bus    `yaml:"bus"`        // the bus of the disk; the default is SCSI
	Serial     string `yaml:"serial"`     // the serial number that the device reports, including spaces around it; may be empty
	// Vendor and Product name the model; may be empty. NVMe disks have the vendor "NVMe".
	Vendor   string       `yaml:"vendor"`
	Product  string       `yaml:"product"`
	Path     string       `yaml:"path"`     // the device interface, which stays when the disk is attached again. The default differs each time.
	Page83   []Identifier `yaml:"page83"`   // the identifiers in the device's order. A disk without any does not support the request.
	Location string       `yaml:"location"` // the text of StorageDeviceLocationProperty, or the path of a file-backed disk; empty for none
	SCSI     *SCSI        `yaml:"scsi"`     // the address. A disk without it does not support the request.

	// Offline and ReadOnly are the state at the start, beside the SAN policy, from which Online exempts the disk.
	Offline        bool       `yaml:"offline"`
	ReadOnly       bool       `yaml:"readOnly"`
	Online         bool       `yaml:"online"`
	WriteProtected bool       `yaml:"writeProtected"` // makes the platform refuse writes: the disk is read-only, and stays so
	Hidden         bool       `yaml:"hidden"`         // makes Windows hide the disk, as it hides the members of storage pools; such a disk is raw
	System         bool       `yaml:"system"`         // makes it the boot disk of Windows
	Dying          bool       `yaml:"dying"`          // makes every request to what is on the disk fail with ERROR_IO_DEVICE (1117), see FailDisk
	NoMedium       bool       `yaml:"noMedium"`       // makes it an empty card reader: a removable disk whose size, table and content fail with ERROR_NOT_READY (21)
	Health         DiskHealth `yaml:"health"`         // what Windows says of the disk, see SetDiskHealth
	Hanging        bool       `yaml:"hanging"`        // makes every request to what is on the disk wait, see HangDisk
	LooksRaw       int        `yaml:"looksRaw"`       // how many times Windows shows the disk as raw although it has a partition table, as if reading it took too long

	Layout     Layout      `yaml:"layout"`     // the kind of partition table; the default is raw, a disk without one
	ID         string      `yaml:"id"`         // the GUID of a GPT, or the signature in an MBR. Of two disks with one id, the second is offline, as a copy.
	Partitions []Partition `yaml:"partitions"` // in the order of their offsets. A superfloppy has one, with a volume.
	Bytes      []Bytes     `yaml:"bytes"`      // written to the disk last, over everything else

	Visible   Size     `yaml:"visible"`   // the size that Windows shows; the default is Size
	Presence  Presence `yaml:"presence"`  // whether the node has the disk, in a description. In a model it can be DiskDetached.
	LogOpened int      `yaml:"logOpened"` // in a description, how often NTFS has mounted a volume of the disk for writing since the start
}

// Presence is whether a node has a disk. ReattachDisk attaches a detached one.
type Presence string

const (
	DiskAttached Presence = "attached"
	DiskUnseen   Presence = "unseen" // attached, but Windows has not found it
	DiskDetached Presence = "detached"
	DiskAway     Presence = "away" // a LUN without a session
)

// Bus is the name of a STORAGE_BUS_TYPE: one of these, ata, fibre, raid, sata, spaces, usb or virtual.
type Bus string

const (
	busATA        Bus = "ata"
	busFibre      Bus = "fibre"
	BusFileBacked Bus = "file-backed" // an attached VHD
	BusISCSI      Bus = "iscsi"
	BusNVMe       Bus = "nvme"
	busRAID       Bus = "raid"
	BusSAS        Bus = "sas"
	busSATA       Bus = "sata"
	BusSCSI       Bus = "scsi"
	busSpaces     Bus = "spaces"
	busUSB        Bus = "usb"
	busVirtual    Bus = "virtual"
)

var busTypes = map[Bus]win.BusType{
	"":            win.BusTypeSCSI,
	BusSCSI:       win.BusTypeSCSI,
	busATA:        3,
	busFibre:      win.BusTypeFibre,
	busUSB:        7,
	busRAID:       8,
	BusISCSI:      win.BusTypeISCSI,
	BusSAS:        win.BusTypeSAS,
	busSATA:       11,
	busVirtual:    win.BusTypeVirtual,
	BusFileBacked: win.BusTypeFileBackedVirtual,
	busSpaces:     16,
	BusNVMe:       win.BusTypeNVMe,
}

// isShared reports whether the SAN policy treats it as a shared bus.
func (b Bus) isShared() bool {
	switch b {
	case "", BusSCSI, BusSAS, BusISCSI, busFibre:
		return true
	default:
		return false
	}
}

// Identifier is an identifier of SCSI page 83, as text or hexadecimal digits.
type Identifier struct {
	CodeSet     string `yaml:"codeSet"`     // binary, ascii or utf8; the default is ascii for Text and binary for Hex
	Type        string `yaml:"type"`        // vendor-specific, vendor-id, eui64, naa or scsi-name; the default follows from the code set
	Association uint32 `yaml:"association"` // 0, the default, is the device itself
	Text        string `yaml:"text"`        // or Hex
	Hex         string `yaml:"hex"`
}

var identifierTypes = map[string]win.IdentifierType{
	"vendor-specific": win.IdentifierVendorSpecific,
	"vendor-id":       win.IdentifierVendorID,
	"eui64":           win.IdentifierEUI64,
	"naa":             win.IdentifierNAA,
	"scsi-name":       win.IdentifierSCSIName,
}

var defaultTypes = map[string]string{"binary": "naa", "ascii": "vendor-id", "utf8": "scsi-name"}

var codeSets = map[string]win.CodeSet{"binary": win.CodeSetBinary, "ascii": win.CodeSetASCII, "utf8": win.CodeSetUTF8}

func (i Identifier) build() (win.DeviceIdentifier, *ModelError) {
	value, err := textOrHex(i.Text, i.Hex)
	if err == nil {
		err = oneOf("codeSet", i.CodeSet, "binary", "ascii", "utf8")
	}
	if err == nil {
		err = oneOf("type", i.Type, "vendor-specific", "vendor-id", "eui64", "naa", "scsi-name")
	}
	set := i.CodeSet
	switch {
	case set == "" && i.Hex != "":
		set = "binary"
	case set == "":
		set = "ascii"
	}
	kind := identifierTypes[cmp.Or(i.Type, defaultTypes[set])]
	return win.DeviceIdentifier{CodeSet: codeSets[set], Type: kind, Association: i.Association, Value: value}, err
}

func textOrHex(text, digits string) ([]byte, *ModelError) {
	if (text == "") == (digits == "") {
		return nil, problem("text", "set either text or hex")
	}
	if text != "" {
		return []byte(text), nil
	}
	value, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		return nil, problem("hex", "%q is not a string of hexadecimal bytes", digits)
	}
	return value, nil
}

// SCSI is a SCSI address with the bus number of the controller. A disk inherits whether it is offline or read-only from an
// earlier one at its address.
type SCSI struct {
	Port      uint8  `yaml:"port"`
	Path      uint8  `yaml:"path"`
	Target    uint8  `yaml:"target"`
	LUN       uint8  `yaml:"lun"`
	BusNumber string `yaml:"busNumber"`
}

// Layout is a kind of partition table. A superfloppy is a file system without one.
type Layout string

const (
	LayoutRaw         Layout = "raw"
	LayoutGPT         Layout = "gpt"
	LayoutMBR         Layout = "mbr"
	LayoutSuperfloppy Layout = "superfloppy"
)

// Partition is a partition of a disk.
type Partition struct {
	Type string `yaml:"type"` // basic (the default), msr, efi, recovery, ldm-metadata, ldm-data, linux or a GUID; in an MBR such as 0x07
	ID   string `yaml:"id"`   // the GUID of a GPT partition. The default is the GUID of its volume.
	// Offset is by default where Windows puts the partition, Size the remaining space.
	Offset Size `yaml:"offset"`
	Size   Size `yaml:"size"`
	// Attributes and Name are of a GPT partition; 0x1000000000000000 is read-only.
	Attributes uint64  `yaml:"attributes"`
	Name       string  `yaml:"name"`
	Boot       bool    `yaml:"boot"`   // the active flag of an MBR partition
	Volume     *Volume `yaml:"volume"` // the volume of the partition. By default a basic, EFI or recovery one has a volume without file system.
	Bytes      []Bytes `yaml:"bytes"`  // written to the partition
}

var partitionTypes = map[string]win.GUID{
	"basic":        win.PartitionBasicData,
	"msr":          win.PartitionMSR,
	"efi":          win.PartitionEFI,
	"recovery":     win.PartitionRecovery,
	"ldm-metadata": win.PartitionLDMMetadata,
	"ldm-data":     win.PartitionLDMData,
	"linux":        win.MustGUID("0fc63daf-8483-4772-8e79-3d69d8477de4"),
}

// Bytes is data at an offset, as text or hexadecimal digits. A negative offset counts from the end.
type Bytes struct {
	Offset Size   `yaml:"offset"`
	Text   string `yaml:"text"`
	Hex    string `yaml:"hex"`
}

// Extent is a part of the disk with that number.
type Extent struct {
	Disk   uint32 `yaml:"disk"`
	Offset Size   `yaml:"offset"`
	Size   Size   `yaml:"size"`
}
