package winlayout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrTruncated reports a buffer too short for what it claims to hold.
var ErrTruncated = errors.New("the data ends too early")

// ErrMalformed reports a buffer that is long enough but makes no sense. Using its numbers
// would divide by zero, or write a partition over another one.
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

// int64At reads a LARGE_INTEGER.
func int64At(b []byte, offset int) int64 {
	return int64(binary.LittleEndian.Uint64(b[offset:])) //nolint:gosec // the same bits, in two's complement
}

// putInt64 writes a LARGE_INTEGER.
func putInt64(b []byte, offset int, value int64) {
	binary.LittleEndian.PutUint64(b[offset:], uint64(value)) //nolint:gosec // the same bits, in two's complement
}

func uint32At(b []byte, offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
