package wmi

import (
	"encoding/binary"
	"unicode/utf16"
)

// The messages of test/wine/wmi/protocol.h.
const (
	opInvoke  = 1
	opRelease = 2
)

// VARTYPEs.
const (
	vtNull     = 1
	vtI4       = 3
	vtBSTR     = 8
	vtDispatch = 9
	vtBool     = 11
	vtArray    = 0x2000 | 12 // of VT_VARIANT, as scripts get all arrays
)

// reader reads what our COM server has written.
type reader struct{ b []byte }

func (r *reader) next(n int) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint16() uint16 { return binary.LittleEndian.Uint16(r.next(2)) }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.next(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.next(8)) }

func (r *reader) text() string {
	b := r.next(int(r.uint32()))
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

func (r *reader) value(s *Server) any {
	switch r.uint16() {
	case vtI4:
		return int32(r.uint32())
	case vtBool:
		return r.uint16() != 0
	case vtBSTR:
		return r.text()
	case vtDispatch:
		return s.find(r.uint64())
	default: // nothing, or an argument that is left out
		return nil
	}
}

type writer struct{ b []byte }

func (w *writer) uint16(v uint16) { w.b = binary.LittleEndian.AppendUint16(w.b, v) }
func (w *writer) uint32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *writer) uint64(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

func (w *writer) text(text string) {
	units := utf16.Encode([]rune(text))
	w.uint32(uint32(2 * len(units)))
	for _, unit := range units {
		w.uint16(unit)
	}
}

func (w *writer) value(s *Server, value any) {
	switch value := value.(type) {
	case int32:
		w.uint16(vtI4)
		w.uint32(uint32(value))
	case bool:
		w.uint16(vtBool)
		if value {
			w.uint16(0xFFFF) // VARIANT_TRUE
		} else {
			w.uint16(0)
		}
	case string:
		w.uint16(vtBSTR)
		w.text(value)
	case []any:
		w.uint16(vtArray)
		w.uint32(uint32(len(value)))
		for _, element := range value {
			w.value(s, element)
		}
	case object:
		w.uint16(vtDispatch)
		w.uint64(s.keep(value))
	default:
		w.uint16(vtNull)
	}
}
