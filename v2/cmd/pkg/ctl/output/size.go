package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// Size formats a number of bytes: 20.0 GiB.
func Size(bytes int64) string { return printable.Size(bytes) }

// ParseSize parses 20Gi (Kubernetes), 20GiB, or a number of bytes. It refuses 20G, which many
// write for 20Gi.
func ParseSize(text string) (int64, error) {
	digits, factor := text, int64(1)
	for i, unit := range printable.Units {
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
