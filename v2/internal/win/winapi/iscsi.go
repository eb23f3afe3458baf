package winapi

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

// isdscStatus is ISDSC_STATUS, how the functions of iscsidsc.dll answer: 0, a status of their
// own, a Win32 code or an HRESULT.
type isdscStatus uint32

func (s isdscStatus) err() error {
	if s == 0 {
		return nil
	}
	return winerr.Code(s)
}

// list is how to ask the initiator for a list. Its functions count in different units: in
// elements, in characters, in bytes.
type list struct {
	unit  int // bytes
	slack int // units of room in addition to what was asked for: lists grow between two calls
}

const (
	// listTries is how often a list may have grown while we made room for it.
	listTries = 5
	// maxList is the longest list that we accept, in bytes.
	maxList = 16 << 20
)

// fetch asks until the list fits. Ask is given a buffer and how many units fit into it, and
// returns how many are there, or are wanted if they do not fit. The buffer is aligned to 8
// bytes, as all memory of this size is in Go.
func (l list) fetch(ask func(buffer []byte, room uint32) (n uint32, err error)) ([]byte, error) {
	room := l.slack
	for range listTries {
		buffer := make([]byte, room*l.unit)
		n, err := ask(buffer, uint32(room)) //nolint:gosec // at most maxList
		if err == nil && int(n) <= room {
			return buffer[:int(n)*l.unit], nil
		}
		if err != nil && !winerr.IsBufferTooSmall(err) {
			return nil, err
		}
		// Some answers say how much they need, others only that they need more.
		if room = max(int(n), 2*room) + l.slack; room > maxList/l.unit {
			break
		}
	}
	return nil, winerr.InsufficientBuffer
}
