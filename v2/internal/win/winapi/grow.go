package winapi

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

// maxAnswer is the largest buffer that a driver gets. The longest valid answer, a table of 128
// partitions, has 18 KiB.
const maxAnswer = 1 << 20

// grow asks until the answer fits: first with a buffer of size bytes, then with what the
// answer itself says it needs, or twice as much.
//
// Too small a buffer is reported in three ways: by ERROR_INSUFFICIENT_BUFFER, by
// ERROR_MORE_DATA with the beginning of the answer, or by success with the beginning of
// the answer, which then has to tell by itself. Need reads it from there; nil is for
// answers that do not say. An answer that is said to be longer than any can be is
// returned as far as it goes.
func grow(size int, need func(answer []byte) int, ask func(buffer []byte) (int, error)) ([]byte, error) {
	for {
		buffer := make([]byte, size)
		n, err := ask(buffer)
		wants := 0
		if need != nil {
			wants = need(buffer)
		}
		switch code := winerr.CodeOf(err); {
		case err == nil && wants <= size:
			return buffer[:n], nil
		case err == nil:
		case code == winerr.InsufficientBuffer || code == winerr.MoreData:
			wants = max(wants, 2*size)
		default:
			return nil, err
		}
		if size >= maxAnswer {
			return buffer[:n], err
		}
		size = min(wants, maxAnswer)
	}
}
