package api

import "github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"

// host is the machine this program runs on.
type host struct{}

var _ HostAPI = host{}

// New returns the machine this program runs on. Calls it cannot serve fail with
// an error for which errors.Is(err, errors.ErrUnsupported) holds.
func New() HostAPI { return host{} }

func (host) AddTargetPortal(*TargetPortal) error { return winerr.NotYet("add target portal") }

func (host) DiscoverTargetPortal(*TargetPortal) ([]string, error) {
	return nil, winerr.NotYet("discover target portal")
}

func (host) ListTargetPortals() ([]TargetPortal, error) {
	return nil, winerr.NotYet("list target portals")
}

func (host) RemoveTargetPortal(*TargetPortal) error { return winerr.NotYet("remove target portal") }

func (host) ConnectTarget(_ *TargetPortal, _, _, _, _ string) error {
	return winerr.NotYet("connect target")
}

func (host) DisconnectTarget(*TargetPortal, string) error { return winerr.NotYet("disconnect target") }

func (host) GetTargetDisks(*TargetPortal, string) ([]string, error) {
	return nil, winerr.NotYet("get disks of target")
}

func (host) SetMutualChapSecret(string) error { return winerr.NotYet("set mutual CHAP secret") }
