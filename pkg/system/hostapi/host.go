package api

import "github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"

// host is the machine this program runs on.
type host struct{}

var _ HostAPI = host{}

// New returns the machine this program runs on. Calls it cannot serve fail with
// an error for which errors.Is(err, errors.ErrUnsupported) holds.
func New() HostAPI { return host{} }

func (host) GetBIOSSerialNumber() (string, error) {
	return "", winerr.NotYet("get BIOS serial number")
}

func (host) GetService(string) (*ServiceInfo, error) { return nil, winerr.NotYet("get service") }

func (host) StartService(string) error { return winerr.NotYet("start service") }

func (host) StopService(string, bool) error { return winerr.NotYet("stop service") }
