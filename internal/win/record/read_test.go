package record

import (
	"strings"
	"testing"
)

// TestRead_Many: a small file of gzip can hold very many calls, which are not all read.
func TestRead_Many(t *testing.T) {
	for _, l := range []line{{Call: &Call{}}, {Raw: &Raw{}}} {
		recording := Recording{Calls: make([]Call, MaxCalls-10), Raw: make([]Raw, 9)}
		if err := recording.add(l); err != nil {
			t.Error(err)
		}
		const want = "the recording has more than 1000000 calls and raw answers; "
		if err := recording.add(l); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
