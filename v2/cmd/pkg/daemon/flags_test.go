package daemon_test

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestFlags_Directories: what the command line says about directories is published, with one dash
// and with two.
func TestFlags_Directories(t *testing.T) {
	for name, c := range map[string]struct{ args, want []string }{
		"without flags":         {nil, []string{`C:\var\lib\kubelet`}},
		"another kubelet":       {[]string{`--kubelet-path=D:\kubelet`}, []string{`D:\kubelet`}},
		"more directories":      {[]string{`--working-dir=C:\csi`, `-working-dir`, `D:\data`}, []string{`C:\var\lib\kubelet`, `C:\csi`, `D:\data`}},
		"both, in either order": {[]string{`-working-dir=C:\csi`, `-kubelet-path`, `C:\k`}, []string{`C:\k`, `C:\csi`}},
	} {
		t.Run(name, func(t *testing.T) {
			var flags daemon.Flags
			set := flag.NewFlagSet(name, flag.ContinueOnError)
			flags.Register(set)
			require.NoError(t, set.Parse(c.args))
			if diff := cmp.Diff(c.want, flags.AllowedDirs()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
