package win

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Drivers get names of targets and addresses of portals from users. Those that pass these checks
// contain neither spaces nor control characters and fit the structures of Windows.

// maxTargetName is how long a name may be, in bytes (RFC 7143, section 4.2.7.1).
const maxTargetName = 223

// qualifiedName is an iqn. name up to where its owner is free to choose: the month in which
// the authority had its domain, and the domain reversed (RFC 7143, section 4.2.7.4).
var qualifiedName = regexp.MustCompile(`^(?i)iqn\.[0-9]{4}-(?:0[1-9]|1[0-2])\.[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::(.+))?$`)

// hexName are the names made of numbers: EUI-64, and NAA of 64 or 128 bits (section 4.2.7.5
// and 4.2.7.6).
var hexName = regexp.MustCompile(`^(?i)(?:eui\.[0-9a-f]{16}|naa\.(?:[0-9a-f]{16}|[0-9a-f]{32}))$`)

// CheckTargetName returns what is wrong with the name of a target, or nil. The text can be
// shown to the caller; it is short even if the name was long.
func CheckTargetName(name string) error {
	if len(name) > maxTargetName {
		return fmt.Errorf("the name of the target has %d bytes; at most %d are allowed", len(name), maxTargetName)
	}
	if hexName.MatchString(name) {
		return nil
	}
	match := qualifiedName.FindStringSubmatch(name)
	if match == nil || !utf8.ValidString(name) || strings.ContainsFunc(match[1], isOutsideName) {
		return fmt.Errorf("%q is not the name of a target; names look like iqn.2001-04.com.example:storage, eui.02004567a425678d or naa.52004567ba64678d", name)
	}
	return nil
}

// isOutsideName is true of what the free part of a name may not contain. The RFC wants lower
// case and has no underscore; targets in the field have both.
func isOutsideName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("-.:_", r)
}

// FoldTarget returns the form in which two names of the same target are equal.
func FoldTarget(name string) string { return strings.ToLower(name) }

// SameTarget compares names of targets, for which case does not matter.
func SameTarget(a, b string) bool { return FoldTarget(a) == FoldTarget(b) }

// maxAddress is how much of an address ISCSI_TARGET_PORTAL holds, without the NUL.
const maxAddress = 255

var hostName = regexp.MustCompile(`^(?i)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*([a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)\.?$`)

var number = regexp.MustCompile(`^(?i)(?:[0-9]+|0x[0-9a-f]*)$`)

// zoneName is a scope of an IPv6 address: on Windows the number of an interface.
var zoneName = regexp.MustCompile(`^[0-9A-Za-z]{1,15}$`)

// ParseAddress checks the address of a portal, an IP address or a host name, and returns it in
// the one spelling we use: without the brackets in which IPv6 addresses often come, and an IPv4
// address without the prefix ::ffff:, which reaches the same machine (RFC 4291, 2.5.5.2). The text
// of the error can be shown to the caller.
func ParseAddress(text string) (string, error) {
	if text == "" {
		return "", errors.New("the address of the portal is empty")
	}
	if len(text) > maxAddress {
		return "", fmt.Errorf("the address of the portal has %d bytes; at most %d are allowed", len(text), maxAddress)
	}
	bare := text
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok && strings.Contains(inner, ":") {
			bare = inner
		}
	}
	if ip, err := netip.ParseAddr(bare); err == nil && (ip.Zone() == "" || zoneName.MatchString(ip.Zone())) {
		return ip.Unmap().String(), nil
	}
	// 10.0.0.256 is a mistake, and 0x0a00000a is a second spelling of 10.0.0.10 for resolvers that
	// follow inet_addr; neither is a name, because no top-level domain is a number.
	if match := hostName.FindStringSubmatch(text); match != nil && !number.MatchString(match[1]) {
		return text, nil
	}
	return "", fmt.Errorf("%q is neither an IP address nor a host name", text)
}

// Same reports whether two portals are the same, however their addresses are spelled.
func (p TargetPortal) Same(other TargetPortal) bool {
	return p.Port == other.Port && foldAddress(p.Address) == foldAddress(other.Address)
}

// Key is a text that is the same for the same portal.
func (p TargetPortal) Key() string {
	return TargetPortal{Address: foldAddress(p.Address), Port: p.Port}.String()
}

func foldAddress(address string) string {
	if canonical, err := ParseAddress(address); err == nil {
		address = canonical
	}
	return strings.ToLower(strings.TrimSuffix(address, "."))
}

// IsIP reports whether the portal is known by its address and not by a name.
func (p TargetPortal) IsIP() bool {
	_, err := netip.ParseAddr(p.Address)
	return err == nil
}
