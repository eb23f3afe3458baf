package winsim

import (
	"encoding/hex"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Disk is a disk of the node.
type Disk struct {
	// Number is the N of \\.\PhysicalDriveN. Disks without a number, or with 0, get
	// the lowest numbers that are free, in their order; the first gets 0.
	Number uint32 `yaml:"number"`
	Size   Size   `yaml:"size"`
	// GrowsTo is the size to which the disk grows as soon as it has been formatted, as
	// if its owner asked for more space then; 0 means never. Windows sees it as it sees
	// what GrowDisk does.
	GrowsTo Size `yaml:"growsTo"`
	// SectorSize is 512, the default, or 4096.
	SectorSize uint32 `yaml:"sectorSize"`
	// Bus is how the disk is attached; the default is SCSI.
	Bus Bus `yaml:"bus"`
	// Serial is what the device reports, spaces around it included; may be empty.
	Serial string `yaml:"serial"`
	// Page83 are the identifiers in the device's order. A disk without any does not
	// know the question.
	Page83 []Identifier `yaml:"page83"`
	// Location is the text of StorageDeviceLocationProperty, or for a file-backed
	// disk the path of the file. A disk without it does not know the question.
	Location string `yaml:"location"`
	// SCSI is the address. A disk without it does not know the question.
	SCSI *SCSI `yaml:"scsi"`

	// Offline and ReadOnly are the state at the start, besides what the SAN policy
	// does. Online says that an operator took the disk online, so that the policy
	// leaves it alone.
	Offline  bool `yaml:"offline"`
	ReadOnly bool `yaml:"readOnly"`
	Online   bool `yaml:"online"`
	// System makes it the disk from which Windows starts.
	System bool `yaml:"system"`
	// Dying makes every request to the disk fail with 1117.
	Dying bool `yaml:"dying"`
	// LooksRaw is how many times Windows shows the disk as raw although it has a
	// partition table, as when it could not be read in time.
	LooksRaw int `yaml:"looksRaw"`

	// Layout is the kind of partition table; the default is none.
	Layout     Layout      `yaml:"layout"`
	Partitions []Partition `yaml:"partitions"`
	// Bytes are put on the disk last, over everything else.
	Bytes []Bytes `yaml:"bytes"`
}

// Bus is STORAGE_BUS_TYPE in words.
type Bus string

// The buses.
const (
	BusATA        Bus = "ata"
	BusFibre      Bus = "fibre"
	BusFileBacked Bus = "file-backed" // an attached VHD
	BusISCSI      Bus = "iscsi"
	BusNVMe       Bus = "nvme"
	BusRAID       Bus = "raid"
	BusSAS        Bus = "sas"
	BusSATA       Bus = "sata"
	BusSCSI       Bus = "scsi"
	BusSpaces     Bus = "spaces"
	BusUSB        Bus = "usb"
	BusVirtual    Bus = "virtual"
)

var busTypes = map[Bus]win.BusType{
	"":            win.BusTypeSCSI,
	BusSCSI:       win.BusTypeSCSI,
	BusATA:        3,
	BusFibre:      6,
	BusUSB:        7,
	BusRAID:       8,
	BusISCSI:      win.BusTypeISCSI,
	BusSAS:        win.BusTypeSAS,
	BusSATA:       11,
	BusVirtual:    win.BusTypeVirtual,
	BusFileBacked: win.BusTypeFileBackedVirtual,
	BusSpaces:     16,
	BusNVMe:       win.BusTypeNVMe,
}

// isShared reports whether the SAN policy takes it for a bus that several machines share.
func (b Bus) isShared() bool {
	switch b {
	case "", BusSCSI, BusSAS, BusISCSI, BusFibre:
		return true
	default:
		return false
	}
}

// Identifier is an identifier of SCSI page 83: text or hexadecimal digits.
type Identifier struct {
	CodeSet     CodeSet `yaml:"codeSet"` // the default is ASCII for Text and binary for Hex
	Association uint32  `yaml:"association"`
	Text        string  `yaml:"text"`
	Hex         string  `yaml:"hex"`
}

// CodeSet says how an identifier is to be read.
type CodeSet string

// The code sets.
const (
	Binary CodeSet = "binary"
	ASCII  CodeSet = "ascii"
	UTF8   CodeSet = "utf8"
)

var codeSets = map[CodeSet]win.CodeSet{Binary: win.CodeSetBinary, ASCII: win.CodeSetASCII, UTF8: win.CodeSetUTF8}

func (i Identifier) build() (win.DeviceIdentifier, *ModelError) {
	value, err := textOrHex(i.Text, i.Hex)
	if err == nil {
		err = oneOf("codeSet", i.CodeSet, Binary, ASCII, UTF8)
	}
	set := i.CodeSet
	switch {
	case set == "" && i.Hex != "":
		set = Binary
	case set == "":
		set = ASCII
	}
	return win.DeviceIdentifier{CodeSet: codeSets[set], Association: i.Association, Value: value}, err
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

// SCSI is a SCSI address, and the bus number of the controller as text.
type SCSI struct {
	Port      uint8  `yaml:"port"`
	Path      uint8  `yaml:"path"`
	Target    uint8  `yaml:"target"`
	LUN       uint8  `yaml:"lun"`
	BusNumber string `yaml:"busNumber"`
}

// Layout is a kind of partition table.
type Layout string

// The layouts. A superfloppy is a file system on a disk without a table: Windows shows it
// as an MBR disk with one partition that starts at offset 0.
const (
	LayoutRaw         Layout = "raw"
	LayoutGPT         Layout = "gpt"
	LayoutMBR         Layout = "mbr"
	LayoutSuperfloppy Layout = "superfloppy"
)

// Partition is a partition of a disk.
type Partition struct {
	// Type is basic, the default, msr, efi, recovery, ldm-metadata, ldm-data, linux or
	// a GUID; on an MBR disk it is a number, by default 0x07.
	Type string `yaml:"type"`
	// ID is the GUID of a GPT partition; the default is that of its volume, else one
	// made of the numbers of disk and partition.
	ID string `yaml:"id"`
	// Offset is by default where Windows would put the partition, Size what is left.
	Offset     Size   `yaml:"offset"`
	Size       Size   `yaml:"size"`
	Attributes uint64 `yaml:"attributes"`
	Name       string `yaml:"name"`
	// Volume is what Windows shows of the partition. Without it a basic partition is
	// a volume without a file system, and others have none.
	Volume *Volume `yaml:"volume"`
	// Bytes are put on the partition.
	Bytes []Bytes `yaml:"bytes"`
}

// partitionTypes are the names of types. Windows has no name for the last one.
var partitionTypes = map[string]win.GUID{
	"basic":        win.PartitionBasicData,
	"msr":          win.PartitionMSR,
	"efi":          win.PartitionEFI,
	"recovery":     win.PartitionRecovery,
	"ldm-metadata": win.PartitionLDMMetadata,
	"ldm-data":     win.PartitionLDMData,
	"linux":        win.MustGUID("0fc63daf-8483-4772-8e79-3d69d8477de4"),
}

// Bytes are bytes at an offset, text or hexadecimal digits. A negative offset counts from
// the end.
type Bytes struct {
	Offset Size   `yaml:"offset"`
	Text   string `yaml:"text"`
	Hex    string `yaml:"hex"`
}

// Extent is a part of a disk of the model, by its number.
type Extent struct {
	Disk   uint32 `yaml:"disk"`
	Offset Size   `yaml:"offset"`
	Size   Size   `yaml:"size"`
}
