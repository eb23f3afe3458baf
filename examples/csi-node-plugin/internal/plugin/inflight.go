package plugin

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// inFlight knows the volumes that are being changed. The specification demands that a
// second change of a volume is refused during the first; kubelet repeats it later.
type inFlight struct {
	mu      sync.Mutex
	volumes map[string]bool
}

func newInFlight() *inFlight { return &inFlight{volumes: map[string]bool{}} }

// do makes a change, unless another one of the volume is under way, and returns the response.
func do[Response any](f *inFlight, request interface{ GetVolumeId() string }, response *Response, change func() error) (*Response, error) {
	volume := request.GetVolumeId()
	if !f.begin(volume) {
		return nil, status.Errorf(codes.Aborted, "another operation on volume %s is in progress; repeat this one later", volume)
	}
	defer f.end(volume)
	if err := change(); err != nil {
		return nil, err
	}
	return response, nil
}

func (f *inFlight) begin(volume string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.volumes[volume] {
		return false
	}
	f.volumes[volume] = true
	return true
}

func (f *inFlight) end(volume string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.volumes, volume)
}
