// Package sddl reads and writes access lists in the text form of Windows, on every system.
//
// It knows only the part that a directory needs: a DACL with entries that allow access. It refuses
// owners, groups, audit entries, conditions, and access lists without entries. It also refuses
// entries that deny access: one for a group that LocalSystem belongs to locks Windows out.
// https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format
package sddl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Well-known accounts.
// https://learn.microsoft.com/windows/win32/secauthz/sid-strings
const (
	Everyone           = "S-1-1-0"
	Anonymous          = "S-1-5-7"
	AuthenticatedUsers = "S-1-5-11"
	LocalSystem        = "S-1-5-18"
	Administrators     = "S-1-5-32-544"
	Users              = "S-1-5-32-545"
)

// Rights to a file or directory.
// https://learn.microsoft.com/windows/win32/fileio/file-access-rights-constants
const (
	AddFile    = 0x2
	FullAccess = 0x1f01ff
)

// Flags say what inherits an entry.
// https://learn.microsoft.com/windows/win32/secauthz/ace-strings
type Flags uint8

// The flags of an entry that allows access.
const (
	ToFiles       Flags = 1 << iota // OI
	ToDirectories                   // CI
	OnlyChildren                    // NP: their children do not inherit it
	InheritOnly                     // IO: it does not apply to the directory itself
)

// List is an access list. The zero value allows nothing.
type List []Entry

// Entry allows an account some access.
type Entry struct {
	Flags Flags
	Mask  uint32
	SID   string // S-1-...
}

const (
	maxLength  = 4096 // of the text
	maxEntries = 64
)

var accounts = map[string]string{
	"WD": Everyone, "CO": "S-1-3-0", "CG": "S-1-3-1", "OW": "S-1-3-4",
	"NU": "S-1-5-2", "IU": "S-1-5-4", "SU": "S-1-5-6", "AN": Anonymous, "AU": AuthenticatedUsers, "RC": "S-1-5-12",
	"SY": LocalSystem, "LS": "S-1-5-19", "NS": "S-1-5-20",
	"BA": Administrators, "BU": Users, "BG": "S-1-5-32-546", "PU": "S-1-5-32-547", "BO": "S-1-5-32-551",
	"AC": "S-1-15-2-1",
}

// Generic rights, and what they mean for a file.
const (
	genericRead    = 0x80000000
	genericWrite   = 0x40000000
	genericExecute = 0x20000000
	genericAll     = 0x10000000

	fileRead    = 0x120089
	fileWrite   = 0x120116
	fileExecute = 0x1200a0
)

var rights = map[string]uint32{
	"GA": genericAll, "GR": genericRead, "GW": genericWrite, "GX": genericExecute,
	"FA": FullAccess, "FR": fileRead, "FW": fileWrite, "FX": fileExecute,
	"RC": 0x20000, "SD": 0x10000, "WD": 0x40000, "WO": 0x80000,
	"CC": 0x1, "DC": 0x2, "LC": 0x4, "SW": 0x8, "RP": 0x10, "WP": 0x20, "DT": 0x40, "LO": 0x80, "CR": 0x100,
}

// allRights are the bits that an entry for a file can have.
const allRights = FullAccess | genericAll | genericRead | genericWrite | genericExecute

var entryFlags = map[string]Flags{"OI": ToFiles, "CI": ToDirectories, "NP": OnlyChildren, "IO": InheritOnly}

// Parse reads an access list such as D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA). The flags before the
// entries do not matter: the root of a volume inherits nothing.
func Parse(text string) (List, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("the access list has %d bytes; %d are allowed", len(text), maxLength)
	}
	rest, ok := strings.CutPrefix(text, "D:")
	if !ok {
		return nil, errors.New("it does not begin with D:; owner, group and audit entries are not supported")
	}
	head, entries, found := strings.Cut(rest, "(")
	switch {
	case !validHead(head):
		return nil, fmt.Errorf("the flags %q are unknown; use D:P", head)
	case !found:
		return nil, errors.New("it has no entries")
	}
	entries, ok = strings.CutSuffix(entries, ")")
	if !ok {
		return nil, errors.New("the last entry does not end with )")
	}
	var list List
	for entry := range strings.SplitSeq(entries, ")(") {
		if len(list) == maxEntries {
			return nil, fmt.Errorf("it has more than %d entries", maxEntries)
		}
		parsed, err := parseEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("entry %d, (%s): %w", len(list)+1, entry, err)
		}
		list = append(list, parsed)
	}
	return list, nil
}

// validHead accepts the flags of a DACL, each at most once.
func validHead(head string) bool {
	head = strings.Replace(head, "AI", "", 1)
	head = strings.Replace(head, "AR", "", 1)
	return head == "" || head == "P"
}

func parseEntry(text string) (Entry, error) {
	fields := strings.Split(text, ";")
	if len(fields) != 6 {
		return Entry{}, fmt.Errorf("it has %d fields; 6 are needed: A;flags;rights;;;account", len(fields))
	}
	if fields[0] != "A" {
		return Entry{}, fmt.Errorf("type %q is not supported; use A, which allows access", fields[0])
	}
	if fields[3] != "" || fields[4] != "" {
		return Entry{}, errors.New("entries for object types are not supported")
	}
	flags, err := parseFlags(fields[1])
	if err != nil {
		return Entry{}, err
	}
	mask, err := parseRights(fields[2])
	if err != nil {
		return Entry{}, err
	}
	sid, err := parseSID(fields[5])
	return Entry{Flags: flags, Mask: mask, SID: sid}, err
}

func parseFlags(text string) (flags Flags, err error) {
	for ; text != ""; text = text[2:] {
		flag := entryFlags[text[:min(2, len(text))]]
		if flag == 0 {
			return 0, fmt.Errorf("unknown flags %q; use OI, CI, NP and IO", text)
		}
		flags |= flag
	}
	if flags&(ToFiles|ToDirectories) == 0 && flags != 0 {
		return 0, errors.New("NP and IO need OI or CI")
	}
	return flags, nil
}

func parseRights(text string) (mask uint32, err error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		value, err := strconv.ParseUint(digits, 16, 32)
		if err != nil || value == 0 || value&^allRights != 0 {
			return 0, fmt.Errorf("%q is not an access mask of a file", text)
		}
		return uint32(value), nil
	}
	if text == "" {
		return 0, errors.New("it has no rights")
	}
	for ; text != ""; text = text[2:] {
		right := rights[text[:min(2, len(text))]]
		if right == 0 {
			return 0, fmt.Errorf("unknown rights %q; use FA, FR, FW, FX or a mask such as 0x1301bf", text)
		}
		mask |= right
	}
	return mask, nil
}

// parseSID accepts the accounts that are the same on every machine, and any SID.
func parseSID(text string) (string, error) {
	if sid := accounts[text]; sid != "" {
		return sid, nil
	}
	parts := strings.Split(text, "-")
	const most = 3 + 15 // Windows' limit of subauthorities
	if len(parts) < 4 || len(parts) > most || parts[0] != "S" || parts[1] != "1" {
		return "", fmt.Errorf("unknown account %q; use its SID, or one of SY, BA, BU, AU, WD, CO", text)
	}
	for i, part := range parts[2:] {
		bits := 32
		if i == 0 {
			bits = 48
		}
		value, err := strconv.ParseUint(part, 10, bits)
		if err != nil || strconv.FormatUint(value, 10) != part {
			return "", fmt.Errorf("%q is not a SID", text)
		}
	}
	return text, nil
}

// String is the text that Parse reads, with SIDs and masks in figures. The list is protected: it
// inherits nothing.
func (l List) String() string {
	var b strings.Builder
	b.WriteString("D:P")
	for _, e := range l {
		fmt.Fprintf(&b, "(A;%s;%#x;;;%s)", e.Flags, e.Mask, e.SID)
	}
	return b.String()
}

func (f Flags) String() (text string) {
	for _, name := range []string{"OI", "CI", "NP", "IO"} {
		if f&entryFlags[name] != 0 {
			text += name
		}
	}
	return text
}

// Allows reports whether an account with these SIDs has the rights to the directory itself.
func (l List) Allows(wanted uint32, sids ...string) bool {
	for _, e := range l {
		for _, sid := range sids {
			if e.SID == sid && e.Flags&InheritOnly == 0 {
				wanted &^= e.Rights()
			}
		}
	}
	return wanted == 0
}

// Rights are the rights to a file, without generic ones.
func (e Entry) Rights() uint32 {
	mask := e.Mask & FullAccess
	for generic, specific := range map[uint32]uint32{
		genericAll: FullAccess, genericRead: fileRead, genericWrite: fileWrite, genericExecute: fileExecute,
	} {
		if e.Mask&generic != 0 {
			mask |= specific
		}
	}
	return mask
}
