package api

import "github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"

var _ HostAPI = DiskAPI{}

// DiskAPI is the machine this program runs on. Use New to get one.
type DiskAPI struct{}

// New returns the machine this program runs on. Calls it cannot serve fail with
// an error for which errors.Is(err, errors.ErrUnsupported) holds.
func New() DiskAPI { return DiskAPI{} }

// ListDiskLocations implements HostAPI.
func (DiskAPI) ListDiskLocations() (map[uint32]DiskLocation, error) {
	return nil, winerr.NotYet("list disk locations")
}

// IsDiskInitialized implements HostAPI.
func (DiskAPI) IsDiskInitialized(uint32) (bool, error) {
	return false, winerr.NotYet("look for a partition table")
}

// InitializeDisk implements HostAPI.
func (DiskAPI) InitializeDisk(uint32) error { return winerr.NotYet("initialize disk") }

// BasicPartitionsExist implements HostAPI.
func (DiskAPI) BasicPartitionsExist(uint32) (bool, error) {
	return false, winerr.NotYet("look for basic partitions")
}

// CreateBasicPartition implements HostAPI.
func (DiskAPI) CreateBasicPartition(uint32) error { return winerr.NotYet("create basic partition") }

// Rescan implements HostAPI.
func (DiskAPI) Rescan() error { return winerr.NotYet("rescan disks") }

// ListDiskIDs implements HostAPI.
func (DiskAPI) ListDiskIDs() (map[uint32]DiskIDs, error) {
	return nil, winerr.NotYet("list disk ids")
}

// GetDiskStats implements HostAPI.
func (DiskAPI) GetDiskStats(uint32) (int64, error) { return 0, winerr.NotYet("get disk size") }

// SetDiskState implements HostAPI.
func (DiskAPI) SetDiskState(uint32, bool) error { return winerr.NotYet("set disk state") }

// GetDiskState implements HostAPI.
func (DiskAPI) GetDiskState(uint32) (bool, error) { return false, winerr.NotYet("get disk state") }
