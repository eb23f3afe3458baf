package daemon_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
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

// TestFlags_Record: a flag about recorded calls is refused if none are recorded.
func TestFlags_Record(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "<nil>"},
		{[]string{"-record-calls=calls.jsonl", "-record-calls-max-size=1"}, "<nil>"},
		{[]string{`-record-calls=\\?\C:\csi-proxy\calls.jsonl`}, "<nil>"},
		{[]string{`-record-calls=C:\csi-proxy\`}, `-record-calls: "C:\\csi-proxy\\" cannot be the path of a file`},
		{[]string{`-record-calls=C:\calls*.jsonl`}, `-record-calls: "C:\\calls*.jsonl" cannot be the path of a file`},
		{[]string{"-record-calls=calls.jsonl", "-record-calls-max-size=0"}, "-record-calls-max-size: 0 is not a size from 1 to 4096 MiB"},
		{[]string{"-record-calls-max-size=1"}, "-record-calls-max-size: no calls are recorded; also set -record-calls"},
		{[]string{"-record-calls-max-size=64"}, "<nil>"},
	} {
		var flags daemon.Flags
		set := flag.NewFlagSet("record", flag.ContinueOnError)
		flags.Register(set)
		require.NoError(t, set.Parse(c.args))
		if got := fmt.Sprint(flags.Check()); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}
