package winpath

import (
	"fmt"
	"strings"
)

// reserved are the names that Win32 turns into devices wherever they stand, with
// or without an extension.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file
var reserved = func() map[string]bool {
	names := map[string]bool{"CON": true, "PRN": true, "AUX": true, "NUL": true, "CONIN$": true, "CONOUT$": true, "CLOCK$": true}
	for _, digit := range "0123456789¹²³" {
		names["COM"+string(digit)] = true
		names["LPT"+string(digit)] = true
	}
	return names
}()

// checkComponent returns the rule that name breaks, or "".
func checkComponent(name string) string {
	switch {
	case name == "":
		return "has two backslashes in a row"
	case name == "." || strings.Contains(name, ".."):
		// Refusing ".." anywhere, not only as a whole component, is what callers
		// have always met here.
		return "uses '.' or '..'; give the path without relative parts"
	case longer(name, MaxComponent):
		return fmt.Sprintf("is longer than %d characters", MaxComponent)
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		// Win32 strips these: "dir." and "dir" would be one directory to Windows
		// and two to every comparison of strings.
		return "ends with a dot or a space"
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c < 0x20:
			return "contains a control character"
		case strings.IndexByte(`<>"/|?*`, c) >= 0:
			return fmt.Sprintf("contains %q, which Windows does not allow in names", c)
		case c == ':':
			// name:stream and name::$INDEX_ALLOCATION are other ways into a file
			// or directory.
			return "contains ':', which names an alternate data stream"
		}
	}
	if isReserved(name) {
		return "is a reserved device name"
	}
	if isShortAlias(name) {
		return "looks like an 8.3 alias of another name; give the long name"
	}
	return ""
}

func isReserved(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.TrimRight(stem, " ")
	const longest = len("CONOUT$")
	if len(stem) > longest {
		return false
	}
	var folded [2 * longest]byte
	return reserved[string(AppendFold(folded[:0], stem))]
}

// isShortAlias reports whether name has the shape of a generated 8.3 alias:
// at most eight characters ending in '~' and digits, and an extension of at most
// three. kubelet's own "kubernetes.io~csi" does not have it.
func isShortAlias(name string) bool {
	stem, extension, _ := strings.Cut(name, ".")
	if len(stem) > 8 || len(extension) > 3 || strings.Contains(extension, ".") {
		return false
	}
	tilde := strings.LastIndexByte(stem, '~')
	if tilde < 0 || tilde == len(stem)-1 {
		return false
	}
	return strings.Trim(stem[tilde+1:], "0123456789") == ""
}
