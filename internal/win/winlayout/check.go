package winlayout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrMalformed reports a buffer that is long enough but makes no sense. Whoever goes on
// with such numbers divides by zero or writes a partition where none may be.
var ErrMalformed = errors.New("the data contradicts itself")

// need is the first line of each decoder: b must hold the structure's size bytes.
func need(b []byte, size int, structure string) error {
	if len(b) < size {
		return fmt.Errorf("%s of %d bytes: %w", structure, len(b), ErrTruncated)
	}
	return nil
}

// isRange reports whether offset and length describe a part of something.
func isRange(offset, length int64) bool {
	return offset >= 0 && length >= 0 && length <= math.MaxInt64-offset
}

func int64At(b []byte, offset int) int64 { return int64(binary.LittleEndian.Uint64(b[offset:])) }

func uint32At(b []byte, offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
