package winlayout

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Names on Windows are any 16-bit units, not only valid UTF-16. Halves of surrogate
// pairs that stand alone are kept as three bytes each, as package syscall does on
// Windows: a name that was read can be given back, and removed.
// https://simonsapin.github.io/wtf-8/

func decodeUTF16(b []byte) string {
	text := make([]byte, 0, len(b))
	for len(b) >= 2 {
		r, size := rune(binary.LittleEndian.Uint16(b)), 2
		if len(b) >= 4 {
			if pair := utf16.DecodeRune(r, rune(binary.LittleEndian.Uint16(b[2:]))); pair != utf8.RuneError {
				r, size = pair, 4
			}
		}
		if utf16.IsSurrogate(r) {
			text = append(text, 0xE0|byte(r>>12&0x0F), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
		} else {
			text = utf8.AppendRune(text, r)
		}
		b = b[size:]
	}
	return string(text)
}

func encodeUTF16(s string) []byte {
	var units []uint16
	for len(s) > 0 {
		if half, ok := loneSurrogate(s); ok {
			units, s = append(units, half), s[3:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		units, s = utf16.AppendRune(units, r), s[size:]
	}
	b := make([]byte, 0, 2*len(units))
	for _, unit := range units {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return b
}

func loneSurrogate(s string) (uint16, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1]&0xE0 != 0xA0 || s[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | uint16(s[1]&0x3F)<<6 | uint16(s[2]&0x3F), true
}
