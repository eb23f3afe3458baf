// Package output writes results: tables for people, JSON or YAML for scripts.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// Format is an output format.
type Format string

// The formats.
const (
	Table Format = "table"
	Wide  Format = "wide" // a table with more columns
	JSON  Format = "json"
	YAML  Format = "yaml"
	HTML  Format = "html" // of some commands
	Name  Format = "name" // only names, one per line
)

// Formats returns all formats.
func Formats() []string {
	return []string{string(Table), string(Wide), string(JSON), string(YAML), string(HTML), string(Name)}
}

// Set implements pflag.Value.
func (f *Format) Set(text string) error {
	if slices.Contains(Formats(), text) {
		*f = Format(text)
		return nil
	}
	return fmt.Errorf("must be one of %s", strings.Join(Formats(), ", "))
}

func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// ForScripts reports whether programs read the output.
func (f *Format) ForScripts() bool { return *f == JSON || *f == YAML }

// Printer writes results in the requested format.
type Printer struct {
	Out       io.Writer
	Format    Format
	NoHeaders bool
	Colour    bool
	// Note shows people what does not belong to the result, on standard error; may be nil.
	Note func(text string)
}

// Value writes a result: v for scripts, text for people. It escapes all control sequences
// except our own colours.
func (p *Printer) Value(v any, text func() string) error {
	if !p.Format.ForScripts() {
		_, err := io.WriteString(p.Out, KeepColours(text()))
		return err
	}
	encoded, err := p.encode(v)
	if err != nil {
		return err
	}
	_, err = p.Out.Write(encoded)
	return err
}

// encode writes JSON, or YAML with the same names in the same order.
func (p *Printer) encode(v any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	if p.Format == JSON {
		return []byte(printable.JSON(buffer.String())), nil
	}
	var node yaml.Node                                                                 // JSON is YAML; only the style changes
	if err := yaml.Unmarshal([]byte(escapeYAML(buffer.String())), &node); err != nil { // YAML refuses some characters that JSON allows
		return nil, err
	}
	blockStyle(&node)
	buffer.Reset()
	block := yaml.NewEncoder(&buffer)
	block.SetIndent(2)
	err := block.Encode(&node)
	return []byte(escapeYAML(buffer.String())), err
}

// escapeYAML escapes what YAML calls printable and terminals do not, such as marks that reverse the
// reading direction. blockStyle has put quotes around such texts.
func escapeYAML(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// blockStyle removes braces, and quotes that YAML does not need.
func blockStyle(node *yaml.Node) {
	if len(node.Content) > 0 || node.Kind == yaml.ScalarNode {
		node.Style = 0
	}
	if strings.ContainsFunc(node.Value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		blockStyle(child)
	}
}
