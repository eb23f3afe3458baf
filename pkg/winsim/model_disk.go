package winsim

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Disk is a disk of the node.
type Disk struct {
	// Number is the N of \\.\PhysicalDriveN. Disks without a number, or with 0, get the lowest
	// free numbers in their order; the first gets 0.
	Number uint32 `yaml:"number" json:"number,omitzero"`
	// Size is required: a multiple of 4096 bytes, from 1 MiB to 1024 TiB.
	Size Size `yaml:"size" json:"size,omitzero"`
	// GrowsTo is the size of the disk after a format, as if its owner asked for more space
	// then; 0 means that it does not grow. See also GrowDisk.
	GrowsTo Size `yaml:"growsTo" json:"growsTo,omitzero"`
	// SectorSize is 512, the default, or 4096.
	SectorSize uint32 `yaml:"sectorSize" json:"sectorSize,omitzero"`
	// Bus is the bus of the disk; the default is SCSI.
	Bus Bus `yaml:"bus" json:"bus,omitzero"`
	// Serial is the serial number that the device reports, including spaces around it; may be
	// empty.
	Serial string `yaml:"serial" json:"serial,omitzero"`
	// Vendor and Product name the model, as the device reports them; may be empty. NVMe disks
	// have the vendor "NVMe".
	Vendor  string `yaml:"vendor" json:"vendor,omitzero"`
	Product string `yaml:"product" json:"product,omitzero"`
	// Path is the device interface, such as \\?\scsi#disk&ven_nvme#6&ca10229&0&000001#{...}. A disk
	// with a Path keeps it when it is attached again, as if it were in the same slot. The default
	// contains the number, and differs each time.
	Path string `yaml:"path" json:"path,omitzero"`
	// Page83 are the identifiers in the device's order. A disk without any does not support the
	// request.
	Page83 []Identifier `yaml:"page83" json:"page83,omitzero"`
	// Location is the text of StorageDeviceLocationProperty, or for a file-backed disk the path
	// of the file. A disk without it does not support the request.
	Location string `yaml:"location" json:"location,omitzero"`
	// SCSI is the address. A disk without it does not support the request.
	SCSI *SCSI `yaml:"scsi" json:"scsi,omitzero"`

	// Offline and ReadOnly are the state at the start; the SAN policy can add to it. Online
	// exempts the disk from the policy, as if an operator had taken it online.
	Offline  bool `yaml:"offline" json:"offline,omitzero"`
	ReadOnly bool `yaml:"readOnly" json:"readOnly,omitzero"`
	Online   bool `yaml:"online" json:"online,omitzero"`
	// WriteProtected makes the platform refuse writes: the disk is read-only, and stays so.
	WriteProtected bool `yaml:"writeProtected" json:"writeProtected,omitzero"`
	// System makes it the boot disk of Windows.
	System bool `yaml:"system" json:"system,omitzero"`
	// Dying makes every request to what is on the disk fail with ERROR_IO_DEVICE (1117), see FailDisk.
	Dying bool `yaml:"dying" json:"dying,omitzero"`
	// Hanging makes every request to what is on the disk wait, see HangDisk.
	Hanging bool `yaml:"hanging" json:"hanging,omitzero"`
	// LooksRaw is how many times Windows shows the disk as raw although it has a partition
	// table, as if reading it took too long.
	LooksRaw int `yaml:"looksRaw" json:"looksRaw,omitzero"`

	// Layout is the kind of partition table; the default is raw, a disk without one.
	Layout Layout `yaml:"layout" json:"layout,omitzero"`
	// ID is the GUID of a GPT, or the eight hexadecimal digits of the signature in an MBR. The
	// default depends on the disk's number. Two disks with the same id are a disk and its copy:
	// Windows keeps the second one offline.
	ID string `yaml:"id" json:"id,omitzero"`
	// Partitions are in the order of their offsets. A superfloppy has one, with a volume.
	Partitions []Partition `yaml:"partitions" json:"partitions,omitzero"`
	// Bytes are written to the disk last, over everything else.
	Bytes []Bytes `yaml:"bytes" json:"bytes,omitzero"`

	// The fields below are for a running node, whose Bytes are the whole content of the disk.

	// Presence is whether the node has the disk; the default is attached, and away for a LUN.
	Presence Presence `yaml:"presence" json:"presence,omitzero"`
	// Visible is the size that Windows shows; the default is Size.
	Visible Size `yaml:"visible" json:"visible,omitzero"`
	// TableSize is the size for which a GPT was written; the default is Visible.
	TableSize Size `yaml:"tableSize" json:"tableSize,omitzero"`
	// Generation is how many disks had left when it arrived, which is a part of its default Path.
	Generation uint32 `yaml:"generation" json:"generation,omitzero"`
	// OfflineAgain is how many times it still goes offline again.
	OfflineAgain int `yaml:"offlineAgain" json:"offlineAgain,omitzero"`
	// LogOpened is how often NTFS has mounted a volume of the disk for writing since the node
	// started. Each time it writes to its log on the disk.
	LogOpened int `yaml:"logOpened" json:"logOpened,omitzero"`
	// FileSystems are those that do not begin with a partition: of volumes that span disks, and
	// those that a removed partition left. Only offset and volume are used.
	FileSystems []Partition `yaml:"fileSystems" json:"fileSystems,omitzero"`
	// Pending is what Windows will do with the disk.
	Pending []Event `yaml:"pending" json:"pending,omitzero"`
}

// Presence is whether a node has a disk.
type Presence string

// Whether a node has a disk. A detached one is what ReattachDisk attaches.
const (
	DiskAttached Presence = "attached"
	DiskUnseen   Presence = "unseen" // attached, but Windows has not found it
	DiskDetached Presence = "detached"
	DiskAway     Presence = "away" // a LUN without a session
)

// Bus is the name of a STORAGE_BUS_TYPE.
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
	BusFibre:      win.BusTypeFibre,
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

// isShared reports whether the SAN policy treats it as a shared bus.
func (b Bus) isShared() bool {
	switch b {
	case "", BusSCSI, BusSAS, BusISCSI, BusFibre:
		return true
	default:
		return false
	}
}

// Identifier is an identifier of SCSI page 83, as text or hexadecimal digits.
type Identifier struct {
	CodeSet     CodeSet        `yaml:"codeSet" json:"codeSet,omitzero"`         // the default is ASCII for Text and binary for Hex
	Type        IdentifierType `yaml:"type" json:"type,omitzero"`               // the default follows from the code set
	Association uint32         `yaml:"association" json:"association,omitzero"` // 0, the default, is the device itself
	Text        string         `yaml:"text" json:"text,omitzero"`               // or Hex
	Hex         string         `yaml:"hex" json:"hex,omitzero"`
}

// IdentifierType says what an identifier is made of.
type IdentifierType string

// The types of identifiers. VendorID is the default for ASCII, NAA for binary, and SCSIName for
// UTF-8.
const (
	VendorSpecific IdentifierType = "vendor-specific"
	VendorID       IdentifierType = "vendor-id"
	EUI64          IdentifierType = "eui64" // the NGUID of an NVMe namespace, too
	NAA            IdentifierType = "naa"
	SCSIName       IdentifierType = "scsi-name"
)

var identifierTypes = map[IdentifierType]win.IdentifierType{
	VendorSpecific: win.IdentifierVendorSpecific,
	VendorID:       win.IdentifierVendorID,
	EUI64:          win.IdentifierEUI64,
	NAA:            win.IdentifierNAA,
	SCSIName:       win.IdentifierSCSIName,
}

var defaultTypes = map[CodeSet]IdentifierType{Binary: NAA, ASCII: VendorID, UTF8: SCSIName}

// CodeSet is the encoding of an identifier.
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
	if err == nil {
		err = oneOf("type", i.Type, VendorSpecific, VendorID, EUI64, NAA, SCSIName)
	}
	set := i.CodeSet
	switch {
	case set == "" && i.Hex != "":
		set = Binary
	case set == "":
		set = ASCII
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

// SCSI is a SCSI address with the bus number of the controller. Windows stores by address whether a disk is offline or
// read-only: a disk inherits the state of an earlier one at its address.
type SCSI struct {
	Port      uint8  `yaml:"port" json:"port,omitzero"`
	Path      uint8  `yaml:"path" json:"path,omitzero"`
	Target    uint8  `yaml:"target" json:"target,omitzero"`
	LUN       uint8  `yaml:"lun" json:"lun,omitzero"`
	BusNumber string `yaml:"busNumber" json:"busNumber,omitzero"`
}

// Layout is a kind of partition table.
type Layout string

// The layouts. A superfloppy is a file system without a partition table: Windows shows it as an
// MBR disk with one partition at offset 0.
const (
	LayoutRaw         Layout = "raw"
	LayoutGPT         Layout = "gpt"
	LayoutMBR         Layout = "mbr"
	LayoutSuperfloppy Layout = "superfloppy"
)

// Partition is a partition of a disk.
type Partition struct {
	// Type is basic (the default), msr, efi, recovery, ldm-metadata, ldm-data, linux or a GUID;
	// on an MBR disk a number, by default 0x07.
	Type string `yaml:"type" json:"type,omitzero"`
	// ID is the GUID of a GPT partition. The default is the GUID of its volume, else one that
	// contains the disk and partition number.
	ID string `yaml:"id" json:"id,omitzero"`
	// Offset is by default where Windows puts the partition, Size the remaining space.
	Offset Size `yaml:"offset" json:"offset,omitzero"`
	Size   Size `yaml:"size" json:"size,omitzero"`
	// Attributes and Name are of a GPT partition; 0x1000000000000000 is read-only.
	Attributes uint64 `yaml:"attributes" json:"attributes,omitzero"`
	Name       string `yaml:"name" json:"name,omitzero"`
	// Boot is the active flag of an MBR partition.
	Boot bool `yaml:"boot" json:"boot,omitzero"`
	// Volume is the volume of the partition. By default a basic, EFI or recovery partition has a volume
	// without a file system, and others have no volume.
	Volume *Volume `yaml:"volume" json:"volume,omitzero"`
	// Bytes are written to the partition.
	Bytes []Bytes `yaml:"bytes" json:"bytes,omitzero"`
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

// Bytes is data at an offset, as text or hexadecimal digits. A negative offset counts from the
// end.
type Bytes struct {
	Offset Size   `yaml:"offset" json:"offset,omitzero"`
	Text   string `yaml:"text" json:"text,omitzero"`
	Hex    string `yaml:"hex" json:"hex,omitzero"`
}

// Extent is a part of the disk with that number.
type Extent struct {
	Disk   uint32 `yaml:"disk" json:"disk,omitzero"`
	Offset Size   `yaml:"offset" json:"offset,omitzero"`
	Size   Size   `yaml:"size" json:"size,omitzero"`
	// Detached means that the number is the one that a detached disk had.
	Detached bool `yaml:"detached" json:"detached,omitzero"`
}
