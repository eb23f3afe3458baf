package winpath

import (
	"fmt"
	"strings"
)

// brokenComponentRule returns the rule that name breaks, or "". name is valid UTF-8 and not
// empty.
//
// Characters that only look like a backslash, a dot, a colon or a letter (U+FF3C,
// U+2024, U+FF1A, U+FF43) are ordinary: they become the real ones by the "best
// fit" of the ANSI functions of Windows, and we call the wide ones only.
// https://learn.microsoft.com/windows/win32/api/stringapiset/nf-stringapiset-widechartomultibyte
// So are $, %, &, ; and the backtick: nothing here is ever given to a shell.
func brokenComponentRule(name string) string {
	switch {
	case name == "." || name == "..":
		return "uses '.' or '..'; give the path without relative parts"
	case strings.Contains(name, ".."):
		// Harmless to Windows, but the original looked for no more than these two
		// characters, and the fewer names with dots the better.
		return "contains '..', which is refused in all names, not only as a relative part"
	case name[len(name)-1] == '.' || name[len(name)-1] == ' ':
		// Win32 strips these: "dir." and "dir" would be one directory to Windows
		// and two to every comparison of strings. It strips no other kind of space.
		// https://learn.microsoft.com/dotnet/standard/io/file-path-formats#trim-characters
		return "ends with a dot or a space"
	case longer(name, MaxComponent):
		return fmt.Sprintf("is longer than %d characters", MaxComponent)
	}
	for i := range len(name) {
		if forbidden[name[i]] {
			return forbiddenRule(name[i])
		}
	}
	switch {
	case IsReserved(name):
		return "is a reserved device name"
	case isShortAlias(name):
		return "looks like an 8.3 alias of another name; give the long name"
	}
	return ""
}

// forbidden are the characters that no name on Windows may have. DEL and the
// controls from U+0080 on are not among them.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file#naming-conventions
var forbidden = func() (set [256]bool) {
	for c := range ' ' {
		set[c] = true
	}
	for _, c := range `<>:"/|?*` {
		set[c] = true
	}
	return set
}()

func forbiddenRule(c byte) string {
	switch {
	case c < ' ':
		// A NUL ends the name for Windows, but not for us.
		return fmt.Sprintf("contains a control character (%#02x)", c)
	case c == ':':
		// name:stream and name::$INDEX_ALLOCATION are other ways into a file or
		// directory.
		// https://learn.microsoft.com/windows/win32/fileio/file-streams
		return "contains ':', which names an alternate data stream"
	case c == '/':
		// To Win32 it separates; to the kernel and so to \\?\ it does not.
		return "contains '/', which Windows does not allow in names; use backslashes to separate them"
	default:
		return fmt.Sprintf("contains %q, which Windows does not allow in names", c)
	}
}

// reserved are the names that Win32 turns into devices wherever they stand, and some more, such as lpt0 (Wine's
// test_RtlIsDosDeviceName_U, dlls/ntdll/tests/path.c). The superscript digits count as digits.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file#naming-conventions
var reserved = func() map[string]bool {
	names := map[string]bool{"CON": true, "PRN": true, "AUX": true, "NUL": true, "CONIN$": true, "CONOUT$": true, "CLOCK$": true}
	for _, digit := range "0123456789¹²³" {
		names["COM"+string(digit)] = true
		names["LPT"+string(digit)] = true
	}
	return names
}()

// IsReserved reports whether Win32 may take name for a device. Extensions do not
// save a name, nor do spaces before them: "NUL .tar.gz" is NUL. Newer versions of
// Windows are less strict; what is refused must not depend on the node.
func IsReserved(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.TrimRight(stem, " ")
	const shortest, longest = len("CON"), len("CONOUT$")
	if len(stem) < shortest || len(stem) > longest {
		return false
	}
	var folded [2 * longest]byte
	return reserved[string(AppendFold(folded[:0], stem))]
}

// isShortAlias reports whether name has the shape of a generated 8.3 alias: up to
// eight UTF-16 units that end in '~' and digits, and an extension of up to three.
// Letters outside ASCII occur in aliases if the node is set up so.
// kubelet's own "kubernetes.io~csi" does not have that shape.
// https://learn.microsoft.com/openspecs/windows_protocols/ms-fscc/18e63b13-ba43-4f5f-a5b7-11e871b71f14
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/nf-ntifs-rtlgenerate8dot3name
//
// An alias leads to a directory whose real name was never checked. An
// administrator can also set aliases without a '~' (fsutil file setshortname);
// only a check on the open handle sees those.
func isShortAlias(name string) bool {
	stem, extension, _ := strings.Cut(name, ".")
	tilde := strings.LastIndexByte(stem, '~')
	if tilde < 0 || tilde == len(stem)-1 || strings.Trim(stem[tilde+1:], "0123456789") != "" {
		return false
	}
	return !longer(stem, 8) && !longer(extension, 3) && !strings.Contains(extension, ".")
}
