package grpcapi

import (
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// parseDiskNumber reads a disk number of the older versions: only decimal digits, of a
// number that fits 32 bits. Truncating a larger number would address another disk.
func parseDiskNumber(text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, winerr.New(winerr.Invalid, "read disk number", quote(text), "it is not a decimal number that fits 32 bits")
	}
	return uint32(number), nil
}

func formatDiskNumber(number uint32) string { return strconv.FormatUint(uint64(number), 10) }

// byText translates a map by disk number for the older versions: its keys become text,
// and value translates its values.
func byText[V, W any](in map[uint32]V, value func(V) W) map[string]W {
	out := make(map[string]W, len(in))
	for number, v := range in {
		out[formatDiskNumber(number)] = value(v)
	}
	return out
}
