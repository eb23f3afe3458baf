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

func decode[T any](b []byte, structure string) (s T, err error) {
	if _, err := binary.Decode(b, binary.LittleEndian, &s); err != nil {
		return s, fmt.Errorf("%s of %d bytes: %w", structure, len(b), ErrTruncated)
	}
	return s, nil
}

// decodeArray reads count structures, one after the other.
func decodeArray[T, V any](b []byte, count uint32, structure string, value func(T) V) ([]V, error) {
	size := binary.Size(*new(T))
	if int64(count) > int64(len(b)/size) {
		return nil, fmt.Errorf("%d of %s in %d bytes: %w", count, structure, len(b), ErrTruncated)
	}
	var list []V
	for ; count > 0; count-- {
		s, err := decode[T](b, structure)
		if err != nil {
			return nil, err
		}
		list = append(list, value(s))
		b = b[size:]
	}
	return list, nil
}

func encode(b []byte, s any) []byte {
	b, err := binary.Append(b, binary.LittleEndian, s)
	if err != nil {
		panic(err) // the type has no size
	}
	return b
}

// isRange reports whether offset and length describe a part of something.
func isRange(offset, length int64) bool {
	return offset >= 0 && length >= 0 && length <= math.MaxInt64-offset
}
