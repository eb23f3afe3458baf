package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/spf13/pflag"
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
	to     io.Writer
	run    string // what 'csi-proxyctl ' becomes
	format string // of what it prints, if any

	mu     sync.Mutex // a node that is late can still print while this is closed
	rest   []byte     // of the last line
	closed bool
}

// longestLine is more than a node prints as JSON.
const longestLine = 64 << 20

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	if l.rest = append(l.rest, text...); len(l.rest) > longestLine {
		return 0, errors.New("the node prints a line without an end")
	}
	return len(text), l.write(bytes.LastIndexByte(l.rest, '\n') + 1)
}

func (l *lines) write(end int) error {
	var text strings.Builder
	for line := range strings.Lines(printable(strings.ReplaceAll(string(l.rest[:end]), "\r\n", "\n"))) {
		text.WriteString(l.paste(line))
	}
	l.rest = l.rest[end:]
	_, err := io.WriteString(l.to, text.String())
	return err
}

// yamlValue is what stands before the value of a line, and the first character of that. csi-proxyctl writes each value as one line.
var yamlValue = regexp.MustCompile(`^( *(?:- )*(?:[\w-]+: )?)(.)`)

// paste replaces the commands of a line.
func (l *lines) paste(line string) string {
	run := l.run
	switch l.format {
	case "html":
		run = html.EscapeString(run)
	case "json":
		run = inJSON(run)
	case "yaml":
		switch start := yamlValue.FindStringSubmatch(line); {
		case start == nil:
		case start[2] == `"`:
			run = inJSON(run)
		case start[2] == "'":
			run = strings.ReplaceAll(run, "'", "''")
		case commands.MatchString(line) && (strings.Contains(run, ": ") || strings.Contains(run, " #")): // which end a value without quotes
			value := replaceCommands(strings.TrimSpace(line[len(start[1]):]), run)
			return start[1] + "'" + strings.ReplaceAll(value, "'", "''") + "'\n"
		}
	}
	return replaceCommands(line, run)
}

func inJSON(text string) string {
	encoded, _ := json.Marshal(text) // cannot fail
	return string(encoded[1 : len(encoded)-1])
}

// commands are those of csi-proxyctl, but for web, which is for a browser on the node. What else follows its name is prose.
var commands = regexp.MustCompile(`csi-proxyctl ((completion|disk|doctor|fs|help|iscsi|node|service|sim|smb|support-bundle|system|versions|volume|watch)\b|--?[a-z]|\[)`)

func replaceCommands(text, run string) string {
	return commands.ReplaceAllStringFunc(text, func(command string) string { return run + strings.TrimPrefix(command, "csi-proxyctl ") })
}

// format returns the -o of arguments for csi-proxyctl, which checks the others.
func format(args []string) (format string) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Usage = func() {}
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVarP(&format, "output", "o", "", "")
	_ = flags.Parse(args)
	return format
}

// quoted is a word of a command line. PowerShell reads it as sh does, unless it has a quote.
func quoted(word string) string {
	if regexp.MustCompile(`^[\w./:=-]+$`).MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Close writes a last line that does not end. Nothing follows it.
func (l *lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.write(len(l.rest))
}

// short is one line that fits into a table.
func short(text string) string {
	const longest = 70
	line := []rune(printable(strings.Join(strings.Fields(text), " ")))
	if len(line) > longest {
		line = append(line[:longest-1], '…')
	}
	return string(line)
}
