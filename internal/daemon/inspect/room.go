package inspect

import (
	"unicode"
	"unicode/utf8"
)

// Clients take answers of up to 4 MiB. Strangers choose the names of links and can mount
// volumes as often as they like, so each of these has a share; what else there is grows with
// the disks of the machine only.
const (
	linkRoom  = 1 << 20 // links, and what is odd about directories
	mountRoom = 1 << 20 // mount paths, of all volumes together
)

// room is how many bytes texts take in the answer, at most. Sentences in it spell out what
// cannot be printed.
func room(texts ...string) int {
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
