package winsim

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// A name that does not fit 8.3 gets a short name, unless the volume is set not to. The rules
// are those of RtlGenerate8dot3Name, except for the undocumented checksum.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/nf-ntifs-rtlgenerate8dot3name
// https://learn.microsoft.com/windows-server/administration/windows-commands/fsutil-8dot3name

const (
	shortStem      = 8
	shortExtension = 3
)

// giveShortName sets or removes the short name of an entry of the directory.
func (e *entry) giveShortName(child *entry, short string) {
	if child.shortName != "" {
		delete(e.aliases, child.shortName)
	}
	if child.shortName = short; short == "" {
		return
	}
	if e.aliases == nil {
		e.aliases = map[string]*entry{}
	}
	e.aliases[short] = child
}

// newShortName returns a free short name in the directory; "" if none is needed.
func (e *entry) newShortName(name string) string {
	if fits8dot3(name) {
		return ""
	}
	stem, extension := shortParts(name)
	free := func(short string) bool { return e.children[short] == nil && e.aliases[short] == nil }
	if stem != "" {
		for i := 1; i <= 4; i++ {
			if short := numbered(stem, i, extension); free(short) {
				return short
			}
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	sum := hash.Sum32()
	stem = fmt.Sprintf("%s%04X", stem[:min(2, len(stem))], uint16(sum^sum>>16))
	const attempts = 1000000 // Windows gives up then, too
	for i := 1; i < attempts; i++ {
		if short := numbered(stem, i, extension); free(short) {
			return short
		}
	}
	return ""
}

func numbered(stem string, number int, extension string) string {
	tail := "~" + strconv.Itoa(number)
	return stem[:min(len(stem), shortStem-len(tail))] + tail + extension
}

// shortParts returns the parts of a name for its short name, the extension with its dot.
func shortParts(name string) (stem, extension string) {
	name = strings.TrimLeft(name, ". ")
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		if extension = shortCharacters(name[dot+1:], shortExtension); extension != "" {
			extension = "." + extension
		}
		name = name[:dot]
	}
	return shortCharacters(name, shortStem-len("~1")), extension
}

func shortCharacters(s string, most int) string {
	short := make([]byte, 0, most)
	for _, r := range s {
		switch {
		case len(short) == most:
			return string(short)
		case r == ' ' || r == '.':
		case fitsShort(r):
			short = append(short, winpath.Fold(string(r))...)
		default:
			short = append(short, '_')
		}
	}
	return string(short)
}

// fits8dot3 reports whether a name is a valid short name, ignoring case.
func fits8dot3(name string) bool {
	stem, extension, dotted := strings.Cut(name, ".")
	return stem != "" && len(stem) <= shortStem && len(extension) <= shortExtension && dotted == (extension != "") &&
		!strings.ContainsFunc(stem+extension, func(r rune) bool { return !fitsShort(r) })
}

func fitsShort(r rune) bool {
	return r > ' ' && r < 0x7f && !strings.ContainsRune(`"*+,./:;<=>?[\]|`, r)
}
