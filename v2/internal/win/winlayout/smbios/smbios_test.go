package smbios_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout/smbios"
)

// raw puts the header of RawSMBIOSData before structures; length is what it says about
// them.
func raw(length byte, structures ...string) []byte {
	return append([]byte{0, 3, 3, 0, length, 0, 0, 0}, strings.Join(structures, "")...)
}

// whole is raw with the right length.
func whole(structures ...string) []byte {
	return raw(byte(len(strings.Join(structures, ""))), structures...)
}

// Structures, as a specification spells them: type, length, handle, and so on.
const (
	bios      = "\x00\x05\x00\x00\x01" + "BIOS vendor\x00\x00"
	bare      = "\x02\x04\x02\x00" + "\x00\x00" // no strings
	system    = "\x01\x08\x01\x00\x01\x02\x00\x03"
	someTexts = "maker\x00product\x00serial\x00\x00"
	end       = "\x7f\x04\x7f\x00\x00\x00"
)

func TestSerialNumber(t *testing.T) {
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"usual":                         {whole(bios, bare, system, someTexts, end), "serial"},
		"first structure":               {whole(system, someTexts, end), "serial"},
		"of VMware":                     {whole(system, "VMware, Inc.\x00VMware7,1\x00VMware-42 1a 00 ff\x00\x00", end), "VMware-42 1a 00 ff"},
		"the first of two":              {whole(system, someTexts, system, "a\x00b\x00c\x00\x00", end), "serial"},
		"no end":                        {whole(system, someTexts), "serial"},
		"spaces after it":               {whole(system, "a\x00b\x00 x y   \x00\x00", end), " x y"},
		"nothing but spaces":            {whole(system, "a\x00b\x00   \x00\x00", end), ""},
		"bytes above ASCII":             {whole(system, "a\x00b\x00\xe9\xff\x80\x00\x00", end), "éÿ\u0080"},
		"no serial number":              {whole("\x01\x08\x01\x00\x01\x02\x00\x00", someTexts, end), ""},
		"a string that is not there":    {whole("\x01\x08\x01\x00\x01\x02\x00\x04", someTexts, end), ""},
		"string 255":                    {whole("\x01\x08\x01\x00\x01\x02\x00\xff", someTexts, end), ""},
		"no strings at all":             {whole(system, "\x00\x00", end), ""},
		"strings without an end":        {whole(system, "maker\x00product\x00ser"), "ser"},
		"too short for a serial number": {whole("\x01\x07\x01\x00\x01\x02\x00", someTexts, end), ""},
		"no System Information":         {whole(bios, bare, end), ""},
		"after the end":                 {whole(bios, end, system, someTexts), ""},
		"the end alone":                 {whole(end), ""},
		"no structures":                 {whole(), ""},
		"cut header":                    {[]byte{0, 3, 3, 0, 99}, ""},
		"nothing":                       {nil, ""},

		// Lengths that lie.
		"length beyond the buffer":       {raw(255, bios, system, someTexts, end), "serial"},
		"length within a structure":      {raw(byte(len(bios)+len(system)+9), bios, system, someTexts, end), ""},
		"length of nothing":              {raw(0, bios, system, someTexts, end), ""},
		"structure without a header":     {whole(bios, "\x02\x00\x02\x00\x00\x00", system, someTexts), ""},
		"structure that ends in its own": {whole(bios, "\x02\x03\x02\x00\x00\x00", system, someTexts), ""},
		"structure beyond the table":     {whole(bios, "\x02\xff\x02\x00\x00\x00", system, someTexts), ""},
		"structure cut in its header":    {whole(bios, "\x01\x08"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := smbios.SerialNumber(c.raw); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestSerialNumber_LongestTable(t *testing.T) {
	many := append(slices.Repeat([]string{bare}, 1<<16), system, someTexts, end)
	b := whole(many...)
	b[4], b[5], b[6], b[7] = 0xff, 0xff, 0xff, 0xff
	if got := smbios.SerialNumber(b); got != "serial" {
		t.Errorf("%q", got)
	}
}

func TestEncode(t *testing.T) {
	for name, c := range map[string]struct{ serial, want string }{
		"usual":                         {"VMware-42 1a", "VMware-42 1a"},
		"none":                          {"", ""},
		"Latin-1":                       {"é", "é"},
		"characters that do not fit in": {"a\x00b€", "a?b?"},
	} {
		for _, maker := range []string{"", "maker"} {
			b := smbios.Encode(smbios.System{Manufacturer: maker, Product: "product", Serial: c.serial, UUID: [16]byte{1, 2, 3}})
			if got := smbios.SerialNumber(b); got != c.want {
				t.Errorf("%s, made by %q: %q, want %q", name, maker, got, c.want)
			}
			if again := smbios.Encode(smbios.System{Manufacturer: maker, Product: "product", Serial: c.serial, UUID: [16]byte{1, 2, 3}}); !bytes.Equal(b, again) {
				t.Errorf("%s: the same system gives two tables", name)
			}
		}
	}
}

// TestEncode_Layout pins the bytes, so that reading and writing cannot be wrong together.
func TestEncode_Layout(t *testing.T) {
	const (
		biosArea = "\x00\x12\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00"
		uuid     = "0123456789abcdef"
		want     = "\x00\x03\x03\x00\x41\x00\x00\x00" + biosArea +
			"\x01\x1b\x01\x00" + "\x01\x02\x00\x03" + uuid + "\x00\x00\x00" + "Me\x00It\x00No 7\x00\x00" +
			"\x7f\x04\x7f\x00" + "\x00\x00"
	)
	s := smbios.System{Manufacturer: "Me", Product: "It", Serial: "No 7"}
	copy(s.UUID[:], uuid)
	if got := string(smbios.Encode(s)); got != want {
		t.Errorf("%q, want\n%q", got, want)
	}
}

// FuzzSerialNumber: whatever the firmware says, there is an answer, and it is text that was
// in the table.
func FuzzSerialNumber(f *testing.F) {
	f.Add(whole(bios, bare, system, someTexts, end))
	f.Add(raw(255, bios, system, "a\x00b\x00\xe9 \x00"))
	f.Add(whole("\x01\x08\x01\x00\x01\x02\x00\xff", "\x00\x00"))
	f.Add(smbios.Encode(smbios.System{Manufacturer: "a", Serial: "b"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := smbios.SerialNumber(b)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > len(b) || strings.HasSuffix(got, " ") || strings.Contains(got, "\x00") {
			t.Fatalf("%q of %d bytes", got, len(b))
		}
	})
}

// FuzzEncode: what was written can be read.
func FuzzEncode(f *testing.F) {
	f.Add("VMware, Inc.", "VMware7,1", "VMware-42 1a")
	f.Add("", "", " x ")
	f.Fuzz(func(t *testing.T, manufacturer, product, serial string) {
		want := []rune(strings.TrimRight(serial, " "))
		for i, r := range want {
			if r == 0 || r > 0xFF {
				want[i] = '?'
			}
		}
		if got := smbios.SerialNumber(smbios.Encode(smbios.System{Manufacturer: manufacturer, Product: product, Serial: serial})); got != string(want) {
			t.Fatalf("%q, want %q", got, string(want))
		}
	})
}
