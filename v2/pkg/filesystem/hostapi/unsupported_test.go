//go:build !windows

package api_test

import (
	"errors"
	"strings"
	"testing"

	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// TestNew_OnOtherSystems: making a host works on every system, and its errors say what to
// use instead.
func TestNew_OnOtherSystems(t *testing.T) {
	host := fsapi.New()
	bound := host.(fsapi.Extended).WithContext(t.Context())
	for _, host := range []fsapi.HostAPI{host, bound} {
		for name, call := range map[string]func() error{
			"PathExists":       func() error { _, err := host.PathExists(`C:\x`); return err },
			"PathValid":        func() error { _, err := host.PathValid(`\\server\share`); return err },
			"PathStats":        func() error { _, err := measure(host, `C:\x`); return err },
			"Mkdir":            func() error { return host.Mkdir(`C:\x`) },
			"Rmdir":            func() error { return host.Rmdir(`C:\x`, false) },
			"Rmdir with force": func() error { return host.Rmdir(`C:\x`, true) },
			"RmdirContents":    func() error { return host.RmdirContents(`C:\x`) },
			"CreateSymlink":    func() error { return host.CreateSymlink(`C:\x`, `C:\y`) },
			"IsSymlink":        func() error { _, err := host.IsSymlink(`C:\x`); return err },
		} {
			err := call()
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "winsim") {
				t.Errorf("%s: %v, want an error that is %q and says what to use instead", name, err, errors.ErrUnsupported)
			}
		}
	}
}
