package bundle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
)

// Calls returns the end of a recording of calls: its header, the description of the machine, and the last calls,
// together at most MaxPart bytes. A line between them says how many are left out, so that the result is a
// recording, too. One with names is refused if names are to be hidden: bytes in it hold names that no pattern
// finds.
func Calls(file io.ReadSeeker, hideNames bool) ([]byte, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	head, err := beginOf(file)
	switch {
	case err != nil:
		return nil, err
	case hideNames && !head.hashed:
		return nil, errors.New("it has names; to record hashes, start the daemon with -record-calls-hash-names")
	case len(head.text)+maxNote > MaxPart:
		return nil, fmt.Errorf("its description of the machine has %d bytes, more than fit; send the file itself", len(head.text))
	}
	from := int64(0)
	if size > MaxPart {
		from = size - int64(MaxPart-len(head.text)-maxNote)
	}
	if from <= head.end {
		head.text, from = nil, 0 // nothing is left out
	}
	end, leftOut, err := endOf(file, head.end, from, size)
	if err != nil {
		return nil, err
	}
	if leftOut > 0 {
		head.text = fmt.Appendf(head.text, `{"lost":{"lines":%d,"reason":"the support bundle has only the last calls"}}`+"\n", leftOut)
	}
	return append(head.text, end...), nil
}

// maxNote is the length of the longest line that says what is left out.
const maxNote = 128

// begin is the beginning of a recording.
type begin struct {
	text   []byte // the header and the description
	end    int64  // where the description ends in the file
	hashed bool
}

// beginOf finds the header and the description of a recording. In one that continues another, calls can be
// between them.
func beginOf(file io.ReadSeeker) (b begin, err error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return b, err
	}
	lines := bufio.NewReader(io.LimitReader(file, maxBegin))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return b, b.missing()
		}
		if err != nil {
			return b, err
		}
		b.end += int64(len(line))
		var l struct {
			Recording *struct{ Hashed bool }
			Machine   json.RawMessage
		}
		_ = json.Unmarshal(line, &l) // a line that is damaged is neither
		switch {
		case b.text == nil && l.Recording == nil:
			return b, errNoRecording
		case b.text == nil:
			b.text, b.hashed = line, l.Recording.Hashed
		case l.Machine != nil:
			b.text = append(b.text, line...)
			return b, nil
		}
	}
}

// maxBegin is how much is searched for the description.
const maxBegin = 64 << 20

var errNoRecording = errors.New("it is not a recording of calls")

// missing says what a recording lacks that ends before its description.
func (b begin) missing() error {
	if b.text == nil {
		return errNoRecording
	}
	return errors.New("it has no description of the machine yet; try again in a moment")
}

// endOf returns the whole lines of a file after an offset, and how many lines are between the description and
// them. An incomplete line at the end, which is being written, is left out.
func endOf(file io.ReadSeeker, described, from, size int64) (text []byte, leftOut int, err error) {
	if from > 0 {
		if _, err := file.Seek(described, io.SeekStart); err != nil {
			return nil, 0, err
		}
		between := bufio.NewReader(io.LimitReader(file, from-described))
		for {
			part, err := between.ReadSlice('\n')
			switch {
			case err == nil:
				leftOut++
			case errors.Is(err, bufio.ErrBufferFull):
			case errors.Is(err, io.EOF):
				if len(part) > 0 {
					leftOut++ // its end is in the text
				}
			default:
				return nil, 0, err
			}
			if errors.Is(err, io.EOF) {
				break
			}
		}
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, 0, err
	}
	if text, err = io.ReadAll(io.LimitReader(file, size-from)); err != nil {
		return nil, 0, err
	}
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	return text[:bytes.LastIndexByte(text, '\n')+1], leftOut, nil
}

// recordings are the files of a bundle that stay recordings when names are hidden: names in them are hashes
// already, and ids become others that are still ids.
var recordings = map[string]bool{"calls.txt": true, "calls.1.txt": true}

// guid is an id in a recording.
var guid = regexp.MustCompile(`(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// otherIDs returns the ids that stand for those in the recordings of a bundle. They are in the same order, because
// machines list volumes by it.
func otherIDs(files []File) map[string]string {
	others := map[string]string{}
	for _, file := range files {
		if !recordings[file.Name] {
			continue
		}
		for _, id := range guid.FindAll(file.Content, -1) {
			others[lowerASCII(string(id))] = ""
		}
	}
	for i, id := range slices.Sorted(maps.Keys(others)) {
		if others[id] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", i+1); kept[id] {
			others[id] = id
		}
	}
	return others
}
