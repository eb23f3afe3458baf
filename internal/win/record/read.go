package record

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
)

// maxLine is the longest line that is read.
const maxLine = 256 << 20

// MaxCalls is how many calls and raw answers a recording may have that is read. Each takes memory, here and in a
// replay, even if gzip makes it as small as a bit.
const MaxCalls = 1_000_000

// Recording is a file of recorded calls.
type Recording struct {
	Header      Header
	Description *Description // nil if the recording ended before it
	Calls       []Call       // in the order in which they began
	Raw         []Raw
	Lost        uint64 // lines that could not be written
	Truncated   bool   // it is cut off, as after a crash: in its last line, or as a compressed file

	damage error // of a line, until a note explains it
}

// Read reads a recording, up to where it is cut off: io.ErrUnexpectedEOF, as a reader of gzip has it, ends it.
// It refuses one of a newer format. It leaves out an incomplete last line, and incomplete lines before a note
// that lines were lost, as a full disk leaves them.
func Read(r io.Reader) (*Recording, error) {
	var recording Recording
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), maxLine)
	scanner.Split(wholeLines)
	for number := 1; scanner.Scan(); number++ {
		text, whole := bytes.CutSuffix(scanner.Bytes(), []byte{'\n'})
		var l line
		err := json.Unmarshal(text, &l)
		switch {
		case len(text) == 0: // the end of a line that was complete but for that
		case err != nil && !whole:
			recording.Truncated = true
		case err != nil:
			recording.damage = cmp.Or(recording.damage, fmt.Errorf("line %d is not a line of a recording: %w", number, err))
			if number == 1 {
				return nil, recording.damage
			}
		case number == 1:
			if err := recording.start(l.Header); err != nil {
				return nil, err
			}
		default:
			if err := recording.add(l); err != nil {
				return nil, err
			}
		}
	}
	cut := errors.Is(scanner.Err(), io.ErrUnexpectedEOF)
	if err := scanner.Err(); err != nil && !cut {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if recording.damage != nil || cut {
		recording.Truncated = true
	}
	if recording.Header.Version == 0 {
		return nil, errNoHeader
	}
	slices.SortStableFunc(recording.Calls, func(a, b Call) int { return cmp.Compare(a.Seq, b.Seq) })
	return &recording, nil
}

var errNoHeader = errors.New("it is not a recording of calls: the first line has no header")

// start checks the header.
func (r *Recording) start(h *Header) error {
	switch {
	case h == nil || h.Format != format || h.Version < 1:
		return errNoHeader
	case h.Version > version:
		return fmt.Errorf("the recording has format version %d, and this program reads versions up to %d; use a newer program", h.Version, version)
	}
	r.Header = *h
	return nil
}

// add adds a line. Only a note about lost lines may follow a damaged one.
func (r *Recording) add(l line) error {
	if r.damage != nil && l.Lost == nil {
		return r.damage
	}
	r.damage = nil
	if len(r.Calls)+len(r.Raw) == MaxCalls && (l.Call != nil || l.Raw != nil) {
		return fmt.Errorf("the recording has more than %d calls and raw answers; read a part of it: its first two lines and the calls that matter", MaxCalls)
	}
	switch {
	case l.Header != nil:
		// The files of one recording, one after the other, are one recording.
		if !l.Header.Later || !l.Header.Started.Equal(r.Header.Started) {
			return errors.New("it holds more than one recording; read each on its own")
		}
	case l.Call != nil:
		l.Call.In, l.Call.Out = normal(l.Call.In), normal(l.Call.Out)
		r.Calls = append(r.Calls, *l.Call)
	case l.Raw != nil:
		r.Raw = append(r.Raw, *l.Raw)
	case l.Description != nil && r.Description == nil:
		r.Description = l.Description
	case l.Lost != nil:
		r.Lost += l.Lost.Lines
	}
	return nil
}

var textLiteral = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// normal returns JSON as the recorder writes it. Another program, such as an editor or a filter, may have added
// spaces, or written characters as \u00e9. Replay compares arguments and results as texts.
func normal(text json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text // there is none
	}
	if !bytes.Contains(text, []byte(`\u`)) && !bytes.Contains(text, []byte(`\/`)) {
		return b.Bytes()
	}
	return textLiteral.ReplaceAllFunc(b.Bytes(), func(literal []byte) []byte {
		var value string
		if json.Unmarshal(literal, &value) != nil {
			return literal
		}
		again, _ := marshal(value) // a text
		return again
	})
}

// wholeLines is bufio.ScanLines that keeps the end of the line, which an incomplete one lacks.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
