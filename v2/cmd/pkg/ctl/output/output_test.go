package output_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
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

// TestPrintable: the name of a device cannot control the terminal.
func TestPrintable(t *testing.T) {
	const hostile = "\x1b]0;owned\a\x1b[2J\n\u202eall is well\x1b[0m"
	const harmless = "<U+001B>]0;owned<U+0007><U+001B>[2J<U+000A><U+202E>all is well<U+001B>[0m"
	if got := output.Printable(hostile); got != harmless {
		t.Errorf("got %q", got)
	}
	type leaf struct{ Text string }
	type tree struct {
		Leaf  *leaf
		None  *leaf
		Leafs []leaf
		Count int
	}
	value := tree{Leaf: &leaf{hostile}, Leafs: []leaf{{hostile}}, Count: 3}
	if got := output.PrintableCopy(value); got.Leaf.Text != harmless || got.Leafs[0].Text != harmless || got.None != nil || got.Count != 3 {
		t.Errorf("got %+v", got)
	}
	if value.Leaf.Text != hostile || value.Leafs[0].Text != hostile {
		t.Error("the value itself has changed, which scripts get")
	}
	var out bytes.Buffer
	p := output.Printer{Out: &out, NoHeaders: true, Colour: true}
	rows := output.Rows{Header: []string{"SERIAL"}}
	rows.Add(output.Cell{Text: hostile, Style: output.Good})
	require.NoError(t, p.Value(nil, func() string { return p.Table(&rows) + "\x1b[2J" + p.Paint(output.Bad, "bad") }))
	if want := "\x1b[32m" + harmless + "\x1b[0m\n<U+001B>[2J\x1b[31mbad\x1b[0m"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestValue_YAMLHostile: YAML escapes as JSON does.
func TestValue_YAMLHostile(t *testing.T) {
	const serial = "\u009b2J\u202eabc\x1b[m\u2066\U000e0001\nx"
	var out bytes.Buffer
	p := output.Printer{Out: &out, Format: output.YAML}
	require.NoError(t, p.Value(map[string]string{"serial": serial}, nil))
	if at := strings.IndexFunc(strings.TrimSpace(out.String()), func(r rune) bool { return !unicode.IsPrint(r) }); at >= 0 {
		t.Errorf("unprintable at %d: %q", at, out.String())
	}
	var again map[string]string
	if err := yaml.Unmarshal(out.Bytes(), &again); err != nil || again["serial"] != serial {
		t.Errorf("got %q, %v", again, err)
	}
}

// TestCopyWith: no text of a description stays as it was, at whatever depth.
func TestCopyWith(t *testing.T) {
	node := &extensionv1.Node{}
	fill(node.ProtoReflect())
	text := prototext.Format(output.CopyWith(struct{ Node *extensionv1.Node }{node}, func(string) string { return "clean" }).Node)
	if strings.Contains(text, "hunter2") || strings.Count(text, "clean") < 50 {
		t.Errorf("%s", text)
	}
}

// fill gives all texts of a message a value, and all lists one element.
func fill(message protoreflect.Message) {
	for fields, i := message.Descriptor().Fields(), 0; i < fields.Len(); i++ {
		switch field := fields.Get(i); {
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			fill(message.Mutable(field).List().AppendMutable().Message())
		case field.IsList() && field.Kind() == protoreflect.StringKind:
			message.Mutable(field).List().Append(protoreflect.ValueOfString("password=hunter2"))
		case field.IsList():
		case field.Kind() == protoreflect.MessageKind:
			fill(message.Mutable(field).Message())
		case field.Kind() == protoreflect.StringKind:
			message.Set(field, protoreflect.ValueOfString("password=hunter2"))
		}
	}
}
