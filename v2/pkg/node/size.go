package node

import (
	"unicode"
	"unicode/utf8"
)

// Clients take answers of up to 4 MiB. Pods choose the names of links and can mount volumes
// any number of times, so each of these has a limit; the rest of the answer grows only with
// the disks of the machine.
const (
	maxLinkBytes  = 1 << 20 // links, and problems of directories
	maxMountBytes = 1 << 20 // mount paths, of all volumes together
)

// encodedSize is how many bytes texts take in the answer, at most. Sentences spell out
// characters that cannot be printed.
func encodedSize(texts ...string) int {
	const (
		frame   = 8 // around each text, and around a few of them
		spelled = len("<U+10FFFF>")
	)
	bytes := 0
	for _, text := range texts {
		bytes += frame
		for _, r := range text {
			if unicode.IsPrint(r) || r == utf8.RuneError {
				bytes += utf8.RuneLen(r)
			} else {
				bytes += spelled
			}
		}
	}
	return bytes
}
