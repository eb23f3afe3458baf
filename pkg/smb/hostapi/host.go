package api

import "github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"

// host is the machine this program runs on.
type host struct{}

var _ HostAPI = host{}

// New returns the machine this program runs on. Calls it cannot serve fail with
// an error for which errors.Is(err, errors.ErrUnsupported) holds.
func New() HostAPI { return host{} }

func (host) IsSMBMapped(string) (bool, error) { return false, winerr.NotYet("look for SMB mapping") }

func (host) NewSMBLink(string, string) error { return winerr.NotYet("link folder to share") }

func (host) NewSMBGlobalMapping(string, string, string) error { return winerr.NotYet("map share") }

func (host) RemoveSMBGlobalMapping(string) error { return winerr.NotYet("unmap share") }
