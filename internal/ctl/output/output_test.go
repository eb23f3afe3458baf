package output_test

import (
	"bytes"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "10": 10, "1Ki": 1024, "1KiB": 1024, "20Gi": 20 << 30, "20 GiB": 20 << 30, "1Pi": 1 << 50, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := output.ParseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Gi", "-1", "1G", "1.5Gi", "8192Pi", "9223372036854775808", "1gi", "x"} {
		if got, err := output.ParseSize(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("10Gi")
	f.Fuzz(func(t *testing.T, text string) {
		if size, err := output.ParseSize(text); err == nil && size < 0 {
			t.Errorf("%q is %d", text, size)
		}
	})
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 20 << 30: "20.0 GiB", 1<<63 - 1: "8192.0 PiB", 1<<30 - 1: "1.0 GiB", 1023 << 20: "1023.0 MiB", 1<<20 - 1: "1.0 MiB", 1048524: "1023.9 KiB"} {
		if got := output.Size(bytes); got != want {
			t.Errorf("%d: got %s, want %s", bytes, got, want)
		}
	}
}

func TestTable_AlignsColumnsWhateverTheirColour(t *testing.T) {
	rows := output.Rows{Header: []string{"NAME", "STATE", "MORE"}, Narrow: 2}
	rows.Add(output.Text("ä"), output.Cell{Text: "good", Style: output.Good}, output.Text(""))
	rows.Add(output.Text("longer"), output.Text("x"), output.Text("more"))
	for _, test := range []struct {
		printer output.Printer
		want    string
	}{
		{output.Printer{}, "NAME    STATE\nä       good\nlonger  x\n"},
		{output.Printer{NoHeaders: true}, "ä       good\nlonger  x\n"},
		{output.Printer{Format: output.Wide}, "NAME    STATE  MORE\nä       good   -\nlonger  x      more\n"},
		{output.Printer{NoHeaders: true, Colour: true}, "ä       \x1b[32mgood\x1b[0m\nlonger  x\n"},
	} {
		if got := test.printer.Table(&rows); got != test.want {
			t.Errorf("got\n%q, want\n%q", got, test.want)
		}
	}
}

// TestValue_YAML: names in the order of JSON, and text that looks like something else quoted.
func TestValue_YAML(t *testing.T) {
	var out bytes.Buffer
	p := output.Printer{Out: &out, Format: output.YAML}
	value := struct {
		Z string   `json:"z"`
		A string   `json:"a"`
		L []string `json:"l"`
	}{"true", `\\?\Volume{x}\`, []string{}}
	if err := p.Value(value, nil); err != nil {
		t.Fatal(err)
	}
	if want := "z: \"true\"\na: \\\\?\\Volume{x}\\\nl: []\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
