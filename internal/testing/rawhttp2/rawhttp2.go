// Package rawhttp2 speaks HTTP/2 by hand, frame by frame, for tests that play clients which do
// not mean well. It is not for clients that do.
package rawhttp2

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// Preface is what a client says first.
// https://www.rfc-editor.org/rfc/rfc9113#name-http-2-connection-preface
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Types of frames.
// https://www.rfc-editor.org/rfc/rfc9113#name-frame-definitions
const (
	Data         byte = 0
	Headers      byte = 1
	RSTStream    byte = 3
	Settings     byte = 4
	Ping         byte = 6
	GoAway       byte = 7
	Continuation byte = 9
)

// Flags of frames.
const (
	ACK        byte = 1 // of settings
	EndHeaders byte = 4 // of the last frame of a header block
)

// Settings that a server announces.
const (
	MaxConcurrentStreams uint16 = 3
	MaxHeaderListSize    uint16 = 6
)

// Frame is a frame of any kind.
type Frame struct {
	Type, Flags byte
	Stream      uint32
	Payload     []byte
}

// Bytes is the frame on the wire.
func (f Frame) Bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(f.Payload))<<8|uint32(f.Type))
	b = append(b, f.Flags)
	b = binary.BigEndian.AppendUint32(b, f.Stream)
	return append(b, f.Payload...)
}

// Greeting is the preface and empty settings: after it a server takes the connection for one.
func Greeting() []byte { return append([]byte(Preface), Frame{Type: Settings}.Bytes()...) }

// Literal is a header field as a literal that is not indexed, with lengths below 2^14.
// https://www.rfc-editor.org/rfc/rfc7541#section-6.2.2
func Literal(name, value string) []byte {
	b := append([]byte{0}, length(len(name))...)
	b = append(b, name...)
	b = append(b, length(len(value))...)
	return append(b, value...)
}

// length is an integer with a prefix of 7 bits.
func length(n int) []byte {
	const limit = 127
	if n < limit {
		return []byte{byte(n)}
	}
	b := []byte{limit}
	for n -= limit; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// Call is the header block that begins a gRPC call.
func Call(method string) []byte {
	var b []byte
	for _, field := range []struct{ name, value string }{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", method},
		{":authority", "localhost"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		b = append(b, Literal(field.name, field.value)...)
	}
	return b
}

// Read reads a frame, but not longer than patience.
func Read(conn net.Conn, patience time.Duration) (Frame, error) {
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return Frame{}, err
	}
	var header [9]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return Frame{}, err
	}
	first := binary.BigEndian.Uint32(header[:])
	f := Frame{Type: byte(first), Flags: header[4], Stream: binary.BigEndian.Uint32(header[5:]), Payload: make([]byte, first>>8)}
	_, err := io.ReadFull(conn, f.Payload)
	return f, err
}

// ParseSettings reads the settings in a frame.
func ParseSettings(f Frame) (map[uint16]uint32, error) {
	if f.Type != Settings || len(f.Payload)%6 != 0 {
		return nil, fmt.Errorf("a frame of type %d with %d bytes has no settings", f.Type, len(f.Payload))
	}
	settings := map[uint16]uint32{}
	for b := f.Payload; len(b) > 0; b = b[6:] {
		settings[binary.BigEndian.Uint16(b)] = binary.BigEndian.Uint32(b[2:])
	}
	return settings, nil
}
