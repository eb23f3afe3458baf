package grpcapi

import (
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// parseDiskNumber reads a disk number as the older versions carry it: decimal
// digits, nothing else, and no more than fit 32 bits. To cut a larger number down
// would address another disk.
func parseDiskNumber(text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, winerr.New(winerr.Invalid, "read disk number", quote(text), "it is not a decimal number that fits 32 bits")
	}
	return uint32(number), nil
}

// formatDiskNumber is the inverse of parseDiskNumber.
func formatDiskNumber(number uint32) string { return strconv.FormatUint(uint64(number), 10) }

// byText translates a map by disk number for the older versions: its keys become
// text, its values whatever value makes of them.
func byText[V, W any](in map[uint32]V, value func(V) W) map[string]W {
	out := make(map[string]W, len(in))
	for number, v := range in {
		out[formatDiskNumber(number)] = value(v)
	}
	return out
}
