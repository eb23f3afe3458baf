package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decodePassword reads the content of a password file: UTF-8, or what a byte order mark says. PowerShell 5.1
// writes UTF-16 by ">" and Out-File. A line break at the end is not part of the password. Errors do not quote the
// content.
func decodePassword(content []byte) (string, error) {
	const advice = `write it without a line break, for instance: Set-Content -NoNewline -Encoding utf8 FILE`
	password := ""
	switch {
	case bytes.HasPrefix(content, []byte{0xFF, 0xFE}):
		password = decodeUTF16(content[2:], binary.LittleEndian)
	case bytes.HasPrefix(content, []byte{0xFE, 0xFF}):
		password = decodeUTF16(content[2:], binary.BigEndian)
	default:
		password = string(bytes.TrimPrefix(content, []byte{0xEF, 0xBB, 0xBF}))
	}
	password = strings.TrimRight(password, "\r\n")
	switch {
	case password == "":
		return "", errors.New("has no password; " + advice)
	case strings.ContainsRune(password, 0):
		return "", errors.New("has a NUL in the password, as UTF-16 without a byte order mark does; " + advice)
	case !utf8.ValidString(password) || strings.ContainsRune(password, utf8.RuneError):
		return "", errors.New("is neither UTF-8 nor UTF-16; " + advice)
	case strings.ContainsAny(password, "\r\n"):
		return "", errors.New("has more than one line; " + advice)
	}
	return password, nil
}

// decodeUTF16 decodes UTF-16. What is not UTF-16, also half a unit at the end, becomes U+FFFD.
func decodeUTF16(content []byte, order binary.ByteOrder) string {
	units := make([]uint16, 0, len(content)/2+1)
	for len(content) >= 2 {
		units = append(units, order.Uint16(content))
		content = content[2:]
	}
	if len(content) > 0 {
		units = append(units, utf8.RuneError)
	}
	return string(utf16.Decode(units))
}
