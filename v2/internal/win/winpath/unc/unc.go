// Package unc knows the grammar of network paths, \\server\share\directory, as pure functions
// that behave the same on every OS.
//
// Anyone who can create a pod chooses the paths in requests, and Windows gives some of them an
// unexpected meaning: \\?\ and \\.\ name devices, and \\server@SSL\ goes to web servers. Parse
// accepts shares and plain directories in them, in one spelling. CheckMappable refuses
// administrative shares, such as \\node\C$, which is a whole disk.
package unc

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Limits in UTF-16 units. DNS allows 255 characters for a name, and NetShareAdd 80 for a
// share.
// https://learn.microsoft.com/windows/win32/api/lmshare/nf-lmshare-netshareadd
const (
	maxServer = 255
	maxShare  = 80
)

// Path is a share, or a directory in one.
type Path struct {
	share  string // \\server\share in lower case, as Windows has it
	server int    // the length of \\server in it
	path   string // as it was given, without a backslash at the end
}

// Server names the server, as \\server in lower case.
func (p Path) Server() string { return p.share[:p.server] }

// Share names the share, as \\server\share in lower case: Windows compares without case, and
// all directories of a share have one connection.
func (p Path) Share() string { return p.share }

// Directory is the whole path in its own case. It ends in a backslash, which links need:
// without it they are resolved wrongly where nothing but a share is left.
func (p Path) Directory() string { return p.path + `\` }

// Inside is the whole path in its own case, without a backslash at the end. It is empty for the
// share itself.
func (p Path) Inside() string {
	if lower(p.path) == p.Share() {
		return ""
	}
	return p.path
}

// Parse reads a path. Slashes count as backslashes, and several in a row as one. There may be any
// number of them in front, as in the original: an escape too many or too few in YAML, or a
// function that cleans local paths, changes it. The error is of kind winerr.Invalid.
func Parse(op, text string) (Path, error) {
	invalid := func(format string, args ...any) (Path, error) {
		return Path{}, winerr.New(winerr.Invalid, op, "", "remote path %s %s", winpath.Quote(text), fmt.Sprintf(format, args...))
	}
	switch {
	case !utf8.ValidString(text):
		return invalid("is not valid UTF-8")
	case len(text) > winpath.MaxPath && winpath.UTF16Len(text) > winpath.MaxPath:
		return invalid("is longer than the %d characters Windows can handle", winpath.MaxPath)
	}
	names := strings.FieldsFunc(text, func(r rune) bool { return r == '\\' || r == '/' })
	switch {
	case len(names) > 0 && (names[0] == "?" || names[0] == "."):
		return invalid(`is that of a device; a share looks like \\server\share`)
	case len(names) < 2:
		return invalid(`names no share; it looks like \\server\share`)
	}
	server, share := names[0], names[1]
	if rule := brokenServerRule(server); rule != "" {
		return invalid("has a server that %s", rule)
	}
	if rule := brokenShareRule(share); rule != "" {
		return invalid("has a share that %s", rule)
	}
	root := `\\` + server + `\` + share
	path := root
	if below := names[2:]; len(below) > 0 {
		path += `\` + strings.Join(below, `\`)
	}
	// The rules for names on local drives hold for those on servers, too. That they can name
	// nothing above the share is what matters most.
	if below := path[len(root):]; below != "" {
		if err := winpath.Validate(`C:` + below); err != nil {
			return Path{}, winerr.As(winerr.Invalid, op, "", fmt.Errorf("remote path %s: the part below the share, taken as a local one: %w", winpath.Quote(text), err), "")
		}
	}
	return Path{share: lower(root), server: len(`\\`) + len(lower(server)), path: path}, nil
}

// ShareOf returns the share that the target of a link is in, as Path.Share does, whatever
// follows in it. Others make links, too, and with more in mind than Parse accepts.
func ShareOf(target string) (share string, ok bool) {
	target = strings.ReplaceAll(target, "/", `\`)
	for _, prefix := range []string{`\\?\UNC\`, `\??\UNC\`} {
		if len(target) >= len(prefix) && winpath.Equal(target[:len(prefix)], prefix) {
			target = `\\` + target[len(prefix):]
		}
	}
	rest, ok := strings.CutPrefix(target, `\\`)
	server, rest, _ := strings.Cut(rest, `\`)
	name, _, _ := strings.Cut(strings.TrimLeft(rest, `\`), `\`)
	path, err := Parse("", `\\`+server+`\`+name)
	return path.Share(), ok && err == nil
}

// lower returns the one spelling of all names that Windows takes for the same: in lower case,
// but for letters of which Windows does not know it. To Windows the sign of the Kelvin is not
// a k, nor the dotted İ an i.
func lower(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(name)
	}
	return strings.Map(func(r rune) rune {
		if l := unicode.ToLower(r); winpath.Equal(string(l), string(r)) {
			return l
		}
		return r
	}, winpath.Fold(name))
}

// notServers are names that others than the SMB client answer to: clients of remote desktops,
// and Linux on the same machine.
var notServers = []string{"tsclient", "wsl$", "wsl.localhost"}

// brokenServerRule returns the rule that a server's name or address breaks, or "".
func brokenServerRule(server string) string {
	switch {
	case winpath.UTF16Len(server) > maxServer:
		return fmt.Sprintf("is longer than %d characters", maxServer)
	case strings.HasPrefix(server, ".") || strings.HasSuffix(server, ".") || strings.Contains(server, ".."):
		return "begins or ends with a dot, or has two in a row"
	case strings.Contains(server, "@"):
		// Windows takes what follows for a port and the path to a web server.
		// https://learn.microsoft.com/windows/win32/webdav/webdav-portal
		return "contains '@', which leads to a web server"
	case slices.Contains(notServers, lower(server)):
		return "is not a file server: Windows handles this name itself"
	}
	// Windows allows none of these in names of computers, and DNS fewer.
	// https://learn.microsoft.com/troubleshoot/windows-server/active-directory/naming-conventions-for-computer-domain-site-ou
	return forbiddenIn(server, `"*+,:;<=>?[]| `, "; an IPv6 address is written with dashes, as in fd00--1.ipv6-literal.net")
}

// brokenShareRule returns the rule that the name of a share breaks, or "".
func brokenShareRule(share string) string {
	switch {
	case winpath.UTF16Len(share) > maxShare:
		return fmt.Sprintf("is longer than %d characters", maxShare)
	case strings.Trim(share, ".") == "":
		return "consists of dots"
	case strings.HasSuffix(share, ".") || strings.HasSuffix(share, " ") || strings.HasPrefix(share, " "):
		return "begins with a space, or ends with a dot or a space"
	case lower(share) == "davwwwroot":
		return "is reserved for WebDAV"
	}
	return forbiddenIn(share, `"*:<>?|`, "")
}

func forbiddenIn(name, set, hint string) string {
	for _, r := range name {
		switch {
		case unicode.IsControl(r):
			return fmt.Sprintf("contains a control character (U+%04X)", r)
		case unicode.Is(unicode.Cf, r):
			return fmt.Sprintf("contains an invisible character (U+%04X)", r)
		case strings.ContainsRune(set, r):
			return fmt.Sprintf("contains %q%s", r, hint)
		}
	}
	return ""
}

// CheckMappable refuses shares that Windows makes by itself: whole drives, the Windows
// directory, pipes, printers. A mapping of one of a node's shares, for which the node's own account
// may be enough, gives access to the whole node. Other shares whose names end in a dollar are
// just hidden. The error is of kind winerr.Denied.
// https://learn.microsoft.com/troubleshoot/windows-server/networking/problems-administrative-shares-missing
func (p Path) CheckMappable(op string) error {
	switch share := p.share[p.server+1:]; share {
	case "admin$", "ipc$", "print$", "fax$", "clusterstorage$", "pipe", "mailslot":
	default:
		if len(share) != 2 || share[1] != '$' || share[0] < 'a' || share[0] > 'z' {
			return nil
		}
	}
	return winerr.New(winerr.Denied, op, p.Share(),
		"it is an administrative share, which gives access to a whole machine; make a share of the directory that is needed")
}
