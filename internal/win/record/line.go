package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The first line of a recording is its header. It names the format and its version.
const (
	format  = "csi-proxy calls"
	version = 1
)

// line is one line of a recording. Exactly one field is set.
type line struct {
	Header      *Header      `json:"recording,omitzero"`
	Description *Description `json:"machine,omitzero"`
	Call        *Call        `json:"call,omitzero"`
	Raw         *Raw         `json:"raw,omitzero"`
	Lost        *lost        `json:"lost,omitzero"`
}

// Header says what a recording is.
type Header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Program string    `json:"program"`          // its version
	Windows string    `json:"windows,omitzero"` // the build, such as 10.0.20348
	Started time.Time `json:"started"`          // by the machine's clock; calls have their time since then
	Hashed  bool      `json:"hashed,omitzero"`  // names and serial numbers are hashes
	Later   bool      `json:"later,omitzero"`   // it continues one that was full
}

// Call is one call of the seam.
type Call struct {
	Seq    uint64          `json:"seq"`         // calls are numbered as they begin; lines are in the order in which they end
	On     int             `json:"on,omitzero"` // the number of the open directory, for its methods
	Method string          `json:"method"`
	In     json.RawMessage `json:"in,omitzero"`    // the arguments by name
	Out    json.RawMessage `json:"out,omitzero"`   // the result
	Error  *Failure        `json:"error,omitzero"` // instead of a result
	Start  int64           `json:"start_us"`       // since the start of the recording
	Took   int64           `json:"took_us"`
}

// lost says that lines are missing here.
type lost struct {
	Lines  uint64 `json:"lines"`
	Reason string `json:"reason"`
}

// MarshalJSON writes the arguments as an object, in their order.
func (a in) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, argument := range a {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := marshal(argument.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", argument.name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is json.Marshal that leaves < and > readable.
func marshal(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// sector is the unit in which a buffer leaves out zeros.
const sector = 512

// buffer is what was read from a device. In JSON it has a length and the parts that are not zero.
type buffer []byte

type bufferParts struct {
	Length int
	Parts  map[int][]byte `json:",omitzero"` // by their offset
}

// MarshalJSON leaves out zeros.
func (b buffer) MarshalJSON() ([]byte, error) {
	parts := bufferParts{Length: len(b), Parts: map[int][]byte{}}
	for at := 0; at < len(b); at += sector {
		part := b[at:min(at+sector, len(b))]
		if bytes.ContainsFunc(part, func(r rune) bool { return r != 0 }) {
			parts.Parts[at] = part
		}
	}
	return json.Marshal(parts)
}

// UnmarshalJSON fills the buffer, which must have the length that was recorded.
func (b *buffer) UnmarshalJSON(text []byte) error {
	var parts bufferParts
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if parts.Length != len(*b) {
		return fmt.Errorf("it has %d bytes, not %d", parts.Length, len(*b))
	}
	clear(*b)
	for at, part := range parts.Parts {
		if at < 0 || at > len(*b)-len(part) {
			return errors.New("a part is beyond its end")
		}
		copy((*b)[at:], part)
	}
	return nil
}
