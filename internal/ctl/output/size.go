package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the binary units in which Windows and Kubernetes count.
var units = []string{"KiB", "MiB", "GiB", "TiB", "PiB"}

// Size writes a number of bytes for people: 20.0 GiB.
func Size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 { // what would be rounded to 1024.0
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// ParseSize reads a number of bytes as Kubernetes writes it, 20Gi, or as we do, 20GiB. A
// number alone is bytes. Units are binary: nobody asks a disk for 20 * 10^9 bytes, but
// many write G and mean Gi, so that is refused instead of guessed.
func ParseSize(text string) (int64, error) {
	digits, factor := text, int64(1)
	for i, unit := range units {
		for _, suffix := range []string{unit, strings.TrimSuffix(unit, "B")} {
			if cut, ok := strings.CutSuffix(text, suffix); ok {
				digits, factor = strings.TrimSpace(cut), 1<<(10*(i+1))
			}
		}
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || number < 0 || number > math.MaxInt64/factor {
		return 0, fmt.Errorf("size %q is no number of bytes, such as 10737418240, 10240Mi or 10GiB", text)
	}
	return number * factor, nil
}
