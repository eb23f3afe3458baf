package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the binary units of Windows and Kubernetes.
var units = []string{"KiB", "MiB", "GiB", "TiB", "PiB"}

// Size formats a number of bytes: 20.0 GiB.
func Size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 { // rounds to 1024.0
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// ParseSize parses 20Gi (Kubernetes), 20GiB, or a number of bytes. It refuses 20G, which many
// write for 20Gi.
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
		return 0, fmt.Errorf("invalid size %q; use a number of bytes such as 10737418240, 10240Mi or 10GiB", text)
	}
	return number * factor, nil
}
