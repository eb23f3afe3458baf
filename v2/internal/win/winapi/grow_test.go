package winapi_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// driver answers with so many bytes, the first four of which tell how many there are.
type driver struct {
	answer, claim int
	tooSmall      error // what it says to a buffer that does not hold the answer
	sizes         []int // the buffers it was given
}

func (d *driver) ask(buffer []byte) (int, error) {
	d.sizes = append(d.sizes, len(buffer))
	answer := make([]byte, d.answer)
	binary.LittleEndian.PutUint32(answer, uint32(d.claim))
	n := copy(buffer, answer)
	if n < len(answer) {
		return n, d.tooSmall
	}
	return n, nil
}

func claim(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }

func TestGrow(t *testing.T) {
	for _, c := range []struct {
		name      string
		driver    driver
		need      func([]byte) int
		wantSizes []int
		want      int
		wantErr   error
	}{
		{"fits", driver{answer: 20, claim: 20}, claim, []int{64}, 20, nil},
		{"fits exactly", driver{answer: 64, claim: 64}, claim, []int{64}, 64, nil},
		{"cut short without a word", driver{answer: 100, claim: 100}, claim, []int{64, 100}, 100, nil},
		{"more data", driver{answer: 300, claim: 300, tooSmall: winerr.MoreData}, claim, []int{64, 300}, 300, nil},
		{"more data, and says less than it has", driver{answer: 300, claim: 8, tooSmall: winerr.MoreData}, claim, []int{64, 128, 256, 512}, 300, nil},
		{"too small, and no way to know", driver{answer: 300, tooSmall: winerr.InsufficientBuffer}, nil, []int{64, 128, 256, 512}, 300, nil},
		{"claims more than it has", driver{answer: 100, claim: 5000}, claim, []int{64, 5000}, 100, nil},
		{"claims more than anybody has", driver{answer: 100, claim: 0xFFFFFFFF}, claim, []int{64, 1 << 20}, 100, nil},
		{"never enough", driver{answer: 2 << 20, claim: 0xFFFFFFFF, tooSmall: winerr.MoreData}, claim, []int{64, 1 << 20}, 1 << 20, winerr.MoreData},
	} {
		got, err := winapi.Grow(64, c.need, c.driver.ask)
		if !errors.Is(err, c.wantErr) || len(got) != c.want || !slices.Equal(c.driver.sizes, c.wantSizes) {
			t.Errorf("%s: %d bytes, %v from buffers of %d; want %d bytes, %v from %d",
				c.name, len(got), err, c.driver.sizes, c.want, c.wantErr, c.wantSizes)
		}
	}
}

func TestGrow_OtherErrors(t *testing.T) {
	asked := 0
	got, err := winapi.Grow(64, claim, func([]byte) (int, error) { asked++; return 0, winerr.NotReady })
	if got != nil || !errors.Is(err, winerr.NotReady) || asked != 1 {
		t.Errorf("%d bytes, %v after %d calls; want 21 after one", len(got), err, asked)
	}
}
