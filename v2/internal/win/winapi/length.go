package winapi

import "math"

// Length returns the length of a buffer in the type that most Windows calls take. Of a buffer
// that is longer than any call needs, Windows sees the beginning only.
func Length(b []byte) uint32 { return uint32(min(len(b), math.MaxInt32)) }
