package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReadmeFile is the chart's manual, which "helm show readme" prints. It has a table of all values.
const ReadmeFile = ChartDir + "/README.md"

// The lines around the table in the README.
const (
	tableBegin = "<!-- values: 'make generate' writes this table from values.yaml -->\n"
	tableEnd   = "<!-- end of values -->\n"
)

// Readme returns the chart's manual with a current table of values.
func Readme(root string) ([]byte, error) {
	text, err := os.ReadFile(path.Join(root, ReadmeFile))
	if err != nil {
		return nil, err
	}
	before, rest, begins := bytes.Cut(text, []byte(tableBegin))
	_, after, ends := bytes.Cut(rest, []byte(tableEnd))
	if !begins || !ends {
		return nil, fmt.Errorf("%s: the lines around the table are missing: %s%s", ReadmeFile, tableBegin, tableEnd)
	}
	table, err := valuesTable(root)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{before, []byte(tableBegin), table, []byte(tableEnd), after}, nil), nil
}

// schema is what the table needs of a JSON schema.
type schema struct {
	AdditionalProperties json.RawMessage
	Properties           map[string]json.RawMessage
}

// of returns the schema of a property, which is empty if the property may be anything.
func (s schema) of(property string) (inner schema) {
	_ = json.Unmarshal(s.Properties[property], &inner) // fails for true and false, which are schemas too
	return inner
}

// fixed reports whether the schema lists all properties of an object. Each of them is a value of its own.
func (s schema) fixed() bool { return string(s.AdditionalProperties) == "false" }

// valuesTable returns a row per value of the chart, with its default and its comment.
func valuesTable(root string) ([]byte, error) {
	var values yaml.Node
	if err := readYAML(root, "values.yaml", &values); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path.Join(root, ChartDir, "values.schema.json"))
	if err != nil {
		return nil, err
	}
	var all schema
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	table := bytes.NewBufferString("| Value | Default | Meaning |\n|---|---|---|\n")
	if err := writeRows(table, "", values.Content[0], all); err != nil {
		return nil, err
	}
	return table.Bytes(), nil
}

func readYAML(root, name string, to any) error {
	text, err := os.ReadFile(path.Join(root, ChartDir, name))
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, to)
}

func writeRows(table *bytes.Buffer, prefix string, mapping *yaml.Node, allowed schema) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name, inner := prefix+key.Value, allowed.of(key.Value)
		meaning := strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(key.HeadComment, "#"), "\n#", ""))
		if meaning == "" {
			return fmt.Errorf("values.yaml line %d: %s has no comment above it", key.Line, name)
		}
		standard := ""
		if !inner.fixed() {
			var decoded any
			if err := value.Decode(&decoded); err != nil {
				return fmt.Errorf("values.yaml line %d: %w", value.Line, err)
			}
			text, err := json.Marshal(decoded)
			if err != nil {
				return fmt.Errorf("values.yaml line %d: %w", value.Line, err)
			}
			standard = "`" + strings.ReplaceAll(string(text), `\\`, `\`) + "`"
		}
		fmt.Fprintf(table, "| `%s` | %s | %s |\n", name, standard, strings.ReplaceAll(meaning, "|", `\|`))
		if inner.fixed() {
			if err := writeRows(table, name+".", value, inner); err != nil {
				return err
			}
		}
	}
	return nil
}
