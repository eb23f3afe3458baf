package printable

import "fmt"

// Units are the binary units of Windows and Kubernetes.
var Units = []string{"KiB", "MiB", "GiB", "TiB", "PiB"}

// Size formats a number of bytes: 20.0 GiB.
func Size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for value >= 1023.95 && unit < len(Units)-1 { // rounds to 1024.0
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, Units[unit])
}
