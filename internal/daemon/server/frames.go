package server

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// frameHeader is the size of the header of an HTTP/2 frame.
const frameHeader = 9

// frames finds the frames in a direction of a connection. gRPC neither says how much of a request has
// arrived nor ends one that never does, so a connection looks itself.
type frames struct {
	header [frameHeader]byte
	have   int // bytes of the header
	left   int // bytes of the payload that are still to come
}

// next takes the first part of b: bytes of a header, or of a payload. began is true at the end of a
// header.
func (f *frames) next(b []byte) (payload, rest []byte, began bool) {
	if f.left > 0 {
		n := min(f.left, len(b))
		f.left -= n
		return b[:n], b[n:], false
	}
	n := copy(f.header[f.have:], b)
	f.have += n
	if f.have < frameHeader {
		return nil, b[n:], false
	}
	f.have, f.left = 0, f.length()
	return nil, b[n:], true
}

// whole reports whether the last frame is complete, and the next one has not begun.
func (f *frames) whole() bool { return f.have == 0 && f.left == 0 }

func (f *frames) length() int {
	return int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
}

func (f *frames) kind() http2.FrameType { return http2.FrameType(f.header[3]) }

func (f *frames) has(flag http2.Flags) bool { return http2.Flags(f.header[4]).Has(flag) }

func (f *frames) stream() uint32 { return binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31) }

// stream is a request whose answer is not sent.
type stream struct {
	id       uint32
	arrived  bool  // the client has sent all of it; until then gRPC calls no handler
	cost     int64 // in bytes
	since    int64 // when it began, in nanoseconds
	answered int64 // the tick at which the answer began; 0: not yet
}
