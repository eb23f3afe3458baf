package servicelist_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func newList(t testing.TB, names ...string) *servicelist.List {
	t.Helper()
	list, err := servicelist.New(names)
	require.NoError(t, err)
	return list
}

func TestList(t *testing.T) {
	for name, c := range map[string]struct {
		list            *servicelist.List
		allowed, denied []string
	}{
		"default": {
			newList(t, servicelist.Default()...),
			[]string{"MSiSCSI", "msiscsi", "MSISCSI", "LanmanWorkstation", "vds", "smphost", "defragsvc", "mpio"},
			[]string{"WinDefend", "MSiSCSI2", "MSiSCS", "MſiSCSI", "", "*"},
		},
		"one":  {newList(t, "x"), []string{"x", "X"}, []string{"xx", "y"}},
		"none": {newList(t), nil, []string{"MSiSCSI", "x"}},
		"all":  {newList(t, "*"), []string{"MSiSCSI", "WinDefend", "x"}, nil},
		"both": {newList(t, "*", "x"), []string{"x", "y"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, service := range c.allowed {
				if err := c.list.Guard("stop service", service); err != nil {
					t.Errorf("%v", err)
				}
			}
			for _, service := range c.denied {
				if err := c.list.Guard("stop service", service); !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), "-allowed-services") {
					t.Errorf("%q: %v, want it denied with the flag named", service, err)
				}
			}
			for _, service := range []string{
				"csi-proxy", "CSI-PROXY", "kubelet", "Kubelet", "containerd", "RpcSs", "rpcss", "RPCSS", "DcomLaunch", "RpcEptMapper", "vmcompute", "hns",
				"csı-proxy", "RpcSſ", "\u212Aubelet", "contaİnerd", // for programs with other tables than Windows'
			} {
				if err := c.list.Guard("stop service", service); !errors.Is(err, winerr.Denied) {
					t.Errorf("%q: %v, want it denied", service, err)
				}
			}
		})
	}
}

func TestList_Nil(t *testing.T) {
	var none *servicelist.List
	require.NoError(t, none.Guard("stop service", "kubelet"), "without a list:")
}

func TestNew_Refuses(t *testing.T) {
	for name, service := range map[string]string{
		"an empty name":       "",
		"a path":              `a\b`,
		"a protected service": "Kubelet",
		"a long name":         strings.Repeat("x", 257),
	} {
		if list, err := servicelist.New([]string{"MSiSCSI", service}); err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, name := range []string{"MSiSCSI", "x", "a b", "MSSQL$INSTANCE", "Dienst für Ä", "OneSyncSvc_1a2b3", strings.Repeat("x", 256), strings.Repeat("ä", 256)} {
		if problem := servicelist.Check(name); problem != "" {
			t.Errorf("%q: %s", name, problem)
		}
	}
	for what, name := range map[string]string{
		"nothing":                    "",
		"a NUL":                      "MSiSCSI\x00x",
		"a NUL alone":                "\x00",
		"a line feed":                "a\nb",
		"an escape":                  "\x1b[2J",
		"C1 controls":                "a\u0085b",
		"a mark that turns text":     "a\u202eb",
		"a backslash":                `..\x`,
		"a slash":                    "a/b",
		"a space before it":          " x",
		"a space after it":           "x ",
		"one character too many":     strings.Repeat("x", 257),
		"too many units":             strings.Repeat("𝒳", 129),
		"ten megabytes":              strings.Repeat("x", 10<<20),
		"ten megabytes of no text":   strings.Repeat("\xff", 10<<20),
		"bytes that are not text":    "a\xffb",
		"half a surrogate, as bytes": "\xed\xa0\x80",
	} {
		if problem := servicelist.Check(name); problem == "" || len(problem) > 200 {
			t.Errorf("%s: %q", what, problem)
		}
	}
}

// FuzzCheck: a name that passes can be sent to Windows as it is.
func FuzzCheck(f *testing.F) {
	f.Add("MSiSCSI")
	f.Add("kubelet\x00")
	f.Add("\xff/")
	list := newList(f, "*")
	f.Fuzz(func(t *testing.T, name string) {
		if servicelist.Check(name) == "" && (name == "" || strings.ContainsAny(name, "\x00/\\\r\n") || len(name) > 1024) {
			t.Fatalf("%q passes", name)
		}
		if strings.EqualFold(name, "kubelet") && list.Guard("stop", name) == nil {
			t.Fatalf("%q is allowed", name)
		}
	})
}
