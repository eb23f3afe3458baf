package win_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

var goodTargets = []string{
	"iqn.2001-04.com.example",
	"iqn.2001-04.com.example:storage",
	"IQN.2001-04.Com.Example:Storage_1.a:b",
	"iqn.1991-05.com.microsoft:server-disk1-target",
	"iqn.2003-01.org.linux-iscsi.host.x8664:sn.0123456789ab",
	"iqn.2001-04.com.example:ħ",
	"iqn.2001-04.com.example:" + strings.Repeat("x", 223-24),
	"eui.02004567A425678D",
	"naa.52004567BA64678D",
	"naa.62004567BA64678D0123456789ABCDEF",
}

var badTargets = []string{
	"",
	"iqn.a",
	"iqn.2001-13.com.example",
	"iqn.2001-04.",
	"iqn.2001-04.com.example:",
	"iqn.2001-04.com.example:a b",
	"iqn.2001-04.com.example:../../x",
	`iqn.2001-04.com.example:a\b`,
	"iqn.2001-04.com.example:a\x00",
	"iqn.2001-04.com.example:a\n",
	"iqn.2001-04.com.example:a\xff",
	"iqn.2001-04.com.example:$(whoami)",
	"iqn.2001-04.com.example:a,b",
	"iqn.2001-04.com.example:'a'",
	"iqn.2001-04.com/example",
	"iqn.2001-04.com.example:" + strings.Repeat("x", 224-24),
	"eui.02004567A425678",
	"eui.02004567A425678G",
	"naa.52004567BA64678D00",
	" iqn.2001-04.com.example",
	strings.Repeat("iqn.", 10<<20),
}

func TestCheckTargetName(t *testing.T) {
	for _, name := range goodTargets {
		if err := win.CheckTargetName(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, name := range badTargets {
		err := win.CheckTargetName(name)
		if err == nil {
			t.Errorf("%.60q is taken for a name", name)
		} else if len(err.Error()) > 2000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
	if !win.SameTarget("iqn.2001-04.com.example:A", "IQN.2001-04.COM.EXAMPLE:a") || win.SameTarget("iqn.2001-04.com.example:a", "iqn.2001-04.com.example:b") {
		t.Error("names are not compared without regard to case")
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.10":               "10.0.0.10",
		"FE80::1":                 "fe80::1",
		"::ffff:10.0.0.10":        "10.0.0.10",
		"[::FFFF:a00:a]":          "10.0.0.10",
		"::10.0.0.10":             "::a00:a",
		"[2001:db8::0:1]":         "2001:db8::1",
		"2001:db8:0:0:0:0:0:1":    "2001:db8::1",
		"fe80::1%12":              "fe80::1%12",
		"storage":                 "storage",
		"storage_1.example.com.":  "storage_1.example.com.",
		"Storage-1.example.com":   "Storage-1.example.com",
		"1a":                      "1a",
		strings.Repeat("a.", 127): strings.Repeat("a.", 127),
	} {
		if got, err := win.ParseAddress(text); err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "10.0.0.256", "012.0.0.10", "0x0a00000a", "0X0A.0", "10.0.0.0xa", "0x", "10.0.0", "1", "10.0.0.10:3260", "[10.0.0.10]", "[::1", "::1]", "a b", "a\x00", "a\n", "a/b", `a\b`, "a..b",
		"-a", "a-", "a;b", "fe80::1%a b", "fe80::1%" + strings.Repeat("1", 16), "*", "é", strings.Repeat("a", 64), strings.Repeat("a.", 128),
		strings.Repeat("a", 10<<20),
	} {
		got, err := win.ParseAddress(text)
		if err == nil {
			t.Errorf("%.60q is taken for the address %q", text, got)
		} else if len(err.Error()) > 2000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
}

func TestTargetPortal_Same(t *testing.T) {
	portal := func(address string, port uint16) win.TargetPortal {
		return win.TargetPortal{SymbolicName: address, Address: address, Port: port}
	}
	for _, c := range []struct {
		a, b win.TargetPortal
		same bool
	}{
		{portal("10.0.0.10", 3260), portal("10.0.0.10", 3260), true},
		{portal("10.0.0.10", 3260), portal("10.0.0.10", 3261), false},
		{portal("10.0.0.10", 3260), portal("10.0.0.11", 3260), false},
		{portal("2001:DB8:0::1", 3260), portal("[2001:db8::1]", 3260), true},
		{portal("10.0.0.10", 3260), portal("::ffff:10.0.0.10", 3260), true},
		{portal("10.0.0.10", 3260), portal("::ffff:10.0.0.11", 3260), false},
		{portal("Storage.example.com", 3260), portal("storage.EXAMPLE.com.", 3260), true},
		{portal("", 3260), portal("", 3260), true},
	} {
		if got := c.a.Same(c.b); got != c.same || (c.a.Key() == c.b.Key()) != c.same {
			t.Errorf("%s and %s: same is %v, want %v; keys %s and %s", c.a, c.b, got, c.same, c.a.Key(), c.b.Key())
		}
	}
	if got := portal("fe80::1", 3260).String(); got != "[fe80::1]:3260" {
		t.Errorf("a portal reads %s", got)
	}
	if !portal("fe80::1", 1).IsIP() || portal("storage", 1).IsIP() {
		t.Error("addresses and names are not distinguished")
	}
}

// FuzzISCSINames shows that nothing passes the checks that could do harm behind them, and that
// what passes stays what it is.
func FuzzISCSINames(f *testing.F) {
	for _, seed := range goodTargets {
		f.Add(seed)
	}
	f.Add("[2001:db8::1]")
	f.Add("fe80::1%12")
	f.Fuzz(func(t *testing.T, text string) {
		harmful := func(r rune) bool {
			return unicode.IsControl(r) || unicode.IsSpace(r) || strings.ContainsRune(`/\'"$;,|&*`, r)
		}
		if win.CheckTargetName(text) == nil && (len(text) > 223 || strings.ContainsFunc(text, harmful)) {
			t.Errorf("%q is taken for the name of a target", text)
		}
		address, err := win.ParseAddress(text)
		if err != nil {
			return
		}
		if address == "" || len(address) > 255 || strings.ContainsFunc(address, harmful) {
			t.Errorf("%q is taken for the address %q", text, address)
		}
		if again, err := win.ParseAddress(address); err != nil || again != address {
			t.Errorf("%q is %q at first and %q, %v, then", text, address, again, err)
		}
	})
}
