package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
)

// printable replaces what a terminal would obey rather than show. Names on a node can have any characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return '?'
	}, text)
}

// limited refuses more than a node prints.
type limited struct {
	io.Writer
	left int
}

func (l *limited) Write(text []byte) (int, error) {
	if l.left -= len(text); l.left < 0 {
		return 0, errors.New("the node sends more than it should")
	}
	return l.Writer.Write(text)
}

// lines makes what a node prints printable, and its commands such as can be pasted here, line by line.
type lines struct {
	to   io.Writer
	run  string // what 'csi-proxyctl ' becomes
	rest []byte // of the last line
}

// longestLine is more than a node prints as JSON.
const longestLine = 64 << 20

func (l *lines) Write(text []byte) (int, error) {
	if l.rest = append(l.rest, text...); len(l.rest) > longestLine {
		return 0, errors.New("the node prints a line without an end")
	}
	return len(text), l.write(bytes.LastIndexByte(l.rest, '\n') + 1)
}

func (l *lines) write(end int) error {
	text := strings.ReplaceAll(string(l.rest[:end]), "\r\n", "\n")
	l.rest = l.rest[end:]
	_, err := io.WriteString(l.to, strings.ReplaceAll(printable(text), "csi-proxyctl ", l.run))
	return err
}

// Close writes a last line that does not end.
func (l *lines) Close() error { return l.write(len(l.rest)) }

// short is one line that fits into a table.
func short(text string) string {
	const longest = 70
	line := []rune(printable(strings.Join(strings.Fields(text), " ")))
	if len(line) > longest {
		line = append(line[:longest-1], '…')
	}
	return string(line)
}
