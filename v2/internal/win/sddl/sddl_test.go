package sddl_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)":           "D:P(A;OICI;0x1f01ff;;;S-1-5-18)(A;OICI;0x1f01ff;;;S-1-5-32-544)",
		"D:(A;;GA;;;WD)":                                "D:P(A;;0x10000000;;;S-1-1-0)",
		"D:PAI(A;CIIO;FRFX;;;CO)":                       "D:P(A;CIIO;0x1200a9;;;S-1-3-0)",
		"D:AIAR(A;OINP;0x1301bf;;;BU)":                  "D:P(A;OINP;0x1301bf;;;S-1-5-32-545)",
		"D:P(A;;FR;;;S-1-5-93-2-2)":                     "D:P(A;;0x120089;;;S-1-5-93-2-2)",
		"D:P(A;;0x1;;;S-1-281474976710655-4294967295)":  "D:P(A;;0x1;;;S-1-281474976710655-4294967295)",
		"D:P(A;;CCDCLCSWRPWPDTLOCRSDRCWDWO;;;S-1-5-18)": "D:P(A;;0xf01ff;;;S-1-5-18)",
	} {
		list, err := sddl.Parse(text)
		if err != nil || list.String() != want {
			t.Errorf("%s: %s, %v, want %s", text, list, err, want)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                                      "does not begin with D:",
		"users":                                 "does not begin with D:",
		"O:BAD:(A;;FA;;;SY)":                    "owner",
		"G:BAD:(A;;FA;;;SY)":                    "owner",
		"S:(AU;SA;FA;;;WD)":                     "audit",
		"D:(A;;FA;;;SY)S:(AU;SA;FA;;;WD)":       "6 are needed",
		"D:":                                    "no entries",
		"D:P":                                   "no entries",
		"D:NO_ACCESS_CONTROL":                   "flags",
		"D:X(A;;FA;;;SY)":                       "flags",
		"D:AIAI(A;;FA;;;SY)":                    "flags",
		"D:(A;;FA;;;SY":                         "does not end",
		"D:(A;;FA;;;SY) ":                       "does not end",
		"D:(A;;FA;;;SY) (A;;FA;;;BA)":           "6 are needed",
		"D:()":                                  "6 are needed",
		"D:(D;;FA;;;WD)":                        "type",
		"D:(XA;;FA;;;WD;(a==1))":                "6 are needed",
		"D:(OA;;FA;bf967aba-0de6-11d0;;WD)":     "type",
		"D:(A;;FA;bf967aba-0de6-11d0;;WD)":      "object types",
		"D:(A;ID;FA;;;SY)":                      "flags",
		"D:(A;O;FA;;;SY)":                       "flags",
		"D:(A;IO;FA;;;SY)":                      "need OI or CI",
		"D:(A;;;;;SY)":                          "no rights",
		"D:(A;;XX;;;SY)":                        "rights",
		"D:(A;;F;;;SY)":                         "rights",
		"D:(A;;0x0;;;SY)":                       "access mask",
		"D:(A;;0x01000000;;;SY)":                "access mask",
		"D:(A;;0x100000000;;;SY)":               "access mask",
		"D:(A;;0x;;;SY)":                        "access mask",
		"D:(A;;0x+1;;;SY)":                      "access mask",
		"D:(A;;FA;;;DA)":                        "account",
		"D:(A;;FA;;;)":                          "account",
		"D:(A;;FA;;;sy)":                        "account",
		"D:(A;;FA;;;S-1-5)":                     "account",
		"D:(A;;FA;;;S-1-5-018)":                 "not a SID",
		"D:(A;;FA;;;S-1-5-4294967296)":          "not a SID",
		"D:(A;;FA;;;S-1-281474976710656-1)":     "not a SID",
		"D:(A;;FA;;;S-1-5" + many("-1") + ")":   "account",
		"D:" + many("(A;;FA;;;SY)"):             "64 entries",
		"D:" + strings.Repeat("(A;;FA)", 10000): "bytes",
	} {
		if list, err := sddl.Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: %v, %v, want an error with %q", text, list, err, says)
		}
	}
}

func many(text string) string { return strings.Repeat(text, 65) }

func TestList_Allows(t *testing.T) {
	for text, want := range map[string]bool{
		"D:(A;;FA;;;BU)":                         true,
		"D:(A;;GA;;;BU)":                         true,
		"D:(A;;GW;;;BU)":                         true,
		"D:(A;OICI;0x1301bf;;;BU)":               true,
		"D:(A;;FR;;;BU)":                         false,
		"D:(A;OICIIO;FA;;;BU)":                   false,
		"D:(A;;FA;;;SY)":                         false,
		"D:(A;;FA;;;SY)(A;;FX;;;BU)(A;;DC;;;WD)": true,
	} {
		list, err := sddl.Parse(text)
		if got := list.Allows(sddl.AddFile, sddl.Users, sddl.Everyone); err != nil || got != want {
			t.Errorf("%s: users can add files: %v, %v, want %v", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;BU)", "D:AI(A;OICIIO;GA;;;CO)", "D:(A;;FR;;;S-1-5-93-2-2)", "D:", "O:BAG:SYD:(D;;GA;;;WD)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := sddl.Parse(text)
		if err != nil {
			return
		}
		if len(list) == 0 {
			t.Fatalf("%q: an access list without entries is accepted", text)
		}
		again, err := sddl.Parse(list.String())
		if err != nil || !reflect.DeepEqual(again, list) {
			t.Fatalf("%q: %s reads as %v, %v", text, list, again, err)
		}
	})
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       bool
	}{
		{"spelled differently", sddl.UsersModify, "D:PAI(A;OICIIO;FA;;;S-1-3-0)(A;OICI;0x1301bf;;;BU)(A;OICI;0x1f01ff;;;SY)(A;OICI;FA;;;S-1-5-32-544)", true},
		{"one entry less", sddl.UsersModify, "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;BU)", false},
		{"other flags", "D:P(A;OICI;FA;;;SY)", "D:P(A;CI;FA;;;SY)", false},
		{"new and users-modify", sddl.NewRoot, sddl.UsersModify, false},
		{"new", sddl.NewRoot, sddl.NewRoot, true},
		{"not access lists", "", "", false},
		{"an entry that denies", "D:(D;;FA;;;WD)", "D:(D;;FA;;;WD)", false},
	} {
		if got := sddl.Same(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
