// Package smbios reads and writes the firmware's description of a machine in the form that
// Windows returns: RawSMBIOSData, a header and then the structures of the System Management BIOS
// specification.
//
// Firmware and hypervisors often give wrong lengths, so every length is checked: a table is read
// as far as it makes sense. All of it is pure functions on bytes.
//
// https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemfirmwaretable
// https://www.dmtf.org/standards/smbios
package smbios

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// RawSMBIOSData
//
//	struct RawSMBIOSData {
//	  BYTE  Used20CallingMethod;
//	  BYTE  SMBIOSMajorVersion;
//	  BYTE  SMBIOSMinorVersion;
//	  BYTE  DmiRevision;
//	  DWORD Length;
//	  BYTE  SMBIOSTableData[];
//	};
//
// https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemfirmwaretable
const (
	rawMajor  = 1
	rawMinor  = 2
	rawLength = 4
	rawHeader = 8
)

// The header of each structure: its type, the length of its formatted area with the header,
// and a handle of two bytes.
const (
	structureType   = 0
	structureLength = 1
	structureHandle = 2
	structureHeader = 4
)

// The types of structures that matter here.
const (
	typeBIOS   = 0
	typeSystem = 1
	typeEnd    = 127
)

// System Information: each byte is the number of a string.
const (
	systemManufacturer = 4
	systemProduct      = 5
	systemSerial       = 7
	systemUUID         = 8
	systemSize         = 27
)

// biosSize is the size of a BIOS Information structure, of which we use nothing.
const biosSize = 18

// SerialNumber returns the serial number of the machine: that of the first System
// Information structure, without the spaces after it. It is empty if there is none.
func SerialNumber(raw []byte) string {
	for s := range structures(raw) {
		if s.formatted[structureType] != typeSystem {
			continue
		}
		if len(s.formatted) <= systemSerial {
			return "" // as old as SMBIOS 2.0, and cut short
		}
		return strings.TrimRight(latin1(s.text(s.formatted[systemSerial])), " ")
	}
	return ""
}

type structure struct {
	formatted []byte // at least the header
	strings   []byte // each ended by a NUL, but perhaps the last
}

// structures goes through a table until its end, or to where it stops making sense.
func structures(raw []byte) func(yield func(structure) bool) {
	return func(yield func(structure) bool) {
		if len(raw) < rawHeader {
			return
		}
		table := raw[rawHeader:]
		if length := binary.LittleEndian.Uint32(raw[rawLength:]); uint64(length) < uint64(len(table)) {
			table = table[:length]
		}
		for len(table) >= structureHeader && table[structureType] != typeEnd {
			length := int(table[structureLength])
			if length < structureHeader || length > len(table) {
				return
			}
			s := structure{formatted: table[:length]}
			s.strings, table = cutStrings(table[length:])
			if !yield(s) {
				return
			}
		}
	}
}

// cutStrings splits the strings of a structure from what follows. Each string ends with a NUL,
// and the last one with two; without strings there are two NULs.
func cutStrings(b []byte) (text, rest []byte) {
	end := bytes.Index(b, []byte{0, 0})
	if end < 0 {
		return b, nil
	}
	return b[:end], b[end+2:]
}

// text returns the string with a number, or nil for 0 and for numbers beyond the last string.
func (s structure) text(number uint8) []byte {
	rest := s.strings
	for ; number > 1; number-- {
		var found bool
		if _, rest, found = bytes.Cut(rest, []byte{0}); !found {
			return nil
		}
	}
	if number == 0 {
		return nil
	}
	text, _, _ := bytes.Cut(rest, []byte{0})
	return text
}

// latin1 reads bytes as text. The specification promises ASCII; other bytes are read as Latin-1,
// so that each byte remains one character.
func latin1(b []byte) string {
	text := make([]rune, 0, len(b))
	for _, c := range b {
		text = append(text, rune(c))
	}
	return string(text)
}

// System is what a System Information structure says. Strings may be empty.
type System struct {
	Manufacturer string
	Product      string
	Serial       string
	UUID         [16]byte
}

// Encode builds a table with one System Information structure, between two others as in
// real ones. Characters beyond Latin-1, and NUL, become question marks.
func Encode(s System) []byte {
	table := encodeStructure(make([]byte, biosSize), typeBIOS, nil)

	system := make([]byte, systemSize)
	copy(system[systemUUID:], s.UUID[:])
	var texts []string
	number := byte(0) // of the last text
	for _, field := range []struct {
		at   int
		text string
	}{{systemManufacturer, s.Manufacturer}, {systemProduct, s.Product}, {systemSerial, s.Serial}} {
		if field.text != "" {
			texts = append(texts, field.text)
			number++
			system[field.at] = number
		}
	}
	table = append(table, encodeStructure(system, typeSystem, texts)...)
	table = append(table, encodeStructure(make([]byte, structureHeader), typeEnd, nil)...)

	raw := make([]byte, rawHeader)
	raw[rawMajor], raw[rawMinor] = 3, 3
	binary.LittleEndian.PutUint32(raw[rawLength:], uint32(min(len(table), math.MaxInt32)))
	return slices.Concat(raw, table)
}

// encodeStructure fills in the header of a structure, and appends its strings.
func encodeStructure(b []byte, kind byte, texts []string) []byte {
	b[structureType], b[structureLength] = kind, byte(min(len(b), math.MaxUint8))
	binary.LittleEndian.PutUint16(b[structureHandle:], uint16(kind))
	for _, text := range texts {
		for _, r := range text {
			if r == 0 || r > 0xFF {
				r = '?'
			}
			b = append(b, byte(r))
		}
		b = append(b, 0)
	}
	if len(texts) == 0 {
		b = append(b, 0)
	}
	return append(b, 0)
}
