package winsim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Size is a number of bytes. In YAML it can have a unit: 512MiB, 10GiB.
type Size int64

const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

var units = []struct {
	name string
	size Size
}{{"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB}, {"TiB", TiB}}

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), Size(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	count, err := strconv.ParseInt(number, 10, 64)
	if err != nil || count > math.MaxInt64/int64(unit) || count < math.MinInt64/int64(unit) {
		return fmt.Errorf("%q is not a size", text)
	}
	*s = Size(count) * unit
	return nil
}

// MarshalText formats a size as UnmarshalText reads it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String formats a size with the largest unit that fits.
func (s Size) String() string {
	for _, u := range slices.Backward(units) {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

func (s Size) plausible() bool { return s >= MiB && s <= 1024*TiB && s%4096 == 0 }
