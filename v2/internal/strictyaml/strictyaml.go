// Package strictyaml reads YAML into structs, and names line and field of what is wrong.
package strictyaml

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Error names the wrong field of a document.
type Error struct {
	File    string
	Line    int
	Field   string // such as files[2].symlink; empty for a syntax error
	Problem string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "%s: ", e.Field)
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Decode reads exactly one YAML document into out, a pointer to a struct with yaml tags. It refuses unknown
// keys, so that a misspelt field does not silently mean its default. Errors of the document are *Error.
func Decode(r io.Reader, name string, out any) (*Document, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, &Error{File: name, Problem: "the file is empty"}
	case err != nil:
		return nil, syntaxError(name, err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{File: name, Line: second.Line, Problem: "the file has more than one YAML document"}
	}
	root := document.Content[0]
	if err := checkFields(root, reflect.TypeOf(out).Elem(), ""); err != nil {
		err.File = name
		return nil, err
	}
	if err := root.Decode(out); err != nil {
		return nil, syntaxError(name, err)
	}
	return &Document{name, root}, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntaxError moves the line number from the YAML library's text to Error.Line.
func syntaxError(name string, err error) *Error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	problem := &Error{File: name, Problem: text}
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		problem.Line, _ = strconv.Atoi(match[1])
		problem.Problem = strings.Replace(text, match[0], "", 1)
	}
	return problem
}

// checkFields compares a document with its type before decoding: only here are line and path of
// each field known.
func checkFields(node *yaml.Node, want reflect.Type, path string) *Error {
	problem := func(format string, args ...any) *Error {
		return &Error{Line: node.Line, Field: path, Problem: fmt.Sprintf(format, args...)}
	}
	if node.Kind == yaml.AliasNode {
		return problem("anchors and aliases are not supported")
	}
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	switch want.Kind() {
	case reflect.Struct:
		keys, types := fieldsOf(want)
		if node.Kind != yaml.MappingNode {
			return problem("expected a mapping with the keys %s", keys)
		}
		seen := map[string]bool{}
		for i := 0; i < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			inner := strings.TrimPrefix(path+"."+key.Value, ".")
			fieldType, known := types[key.Value]
			switch {
			case key.Kind != yaml.ScalarNode:
				return &Error{Line: key.Line, Field: path, Problem: "a key must be a single word"}
			case !known:
				return &Error{Line: key.Line, Field: inner, Problem: "unknown field; use one of " + keys}
			case seen[key.Value]:
				return &Error{Line: key.Line, Field: inner, Problem: "duplicate field"}
			}
			seen[key.Value] = true
			if err := checkFields(value, fieldType, inner); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			return problem("expected a list")
		}
		for i, element := range node.Content {
			if err := checkFields(element, want.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	default:
		if node.Kind != yaml.ScalarNode {
			return problem("expected a single value")
		}
		if node.Value == "" || node.ShortTag() == "!!null" {
			// It would silently mean the default: a file with empty content would be a
			// directory.
			return problem("the value is missing; add one or remove the field")
		}
		if err := node.Decode(reflect.New(want).Interface()); err != nil {
			return problem("%q is not a %s", node.Value, kindName(want))
		}
	}
	return nil
}

func kindName(t reflect.Type) string {
	switch t.Name() {
	case "Duration":
		return "duration such as 50ms"
	case "Size":
		return "size such as 10GiB"
	}
	return t.String()
}

// Document is what was decoded.
type Document struct {
	name string
	root *yaml.Node
}

// Locate adds file and line to the error of a field.
func (d *Document) Locate(e *Error) *Error {
	e.File, e.Line = d.name, d.Line(e.Field)
	return e
}

// Line finds the line of a field such as files[2].volume, or of its nearest existing parent.
func (d *Document) Line(path string) int { return lineOf(d.root, path) }

func lineOf(node *yaml.Node, path string) int {
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	line := node.Line
	for _, step := range steps {
		next := childNode(node, step)
		if next == nil {
			break
		}
		node, line = next, cmp.Or(next.Line, line)
	}
	return line
}

// childNode returns an element of a list by index, or a value of a mapping by key, or nil.
func childNode(node *yaml.Node, step string) *yaml.Node {
	if node.Kind == yaml.MappingNode {
		for i := 0; i < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
		return nil
	}
	if index, err := strconv.Atoi(step); err == nil && index < len(node.Content) {
		return node.Content[index]
	}
	return nil
}

// fieldsOf are the YAML keys of a struct, and the types of their fields.
func fieldsOf(t reflect.Type) (keys string, types map[string]reflect.Type) {
	var names []string
	types = map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		switch tag := field.Tag.Get("yaml"); tag {
		case "-":
		case ",inline":
			inner, fields := fieldsOf(field.Type)
			names = append(names, inner)
			maps.Copy(types, fields)
		default:
			names, types[tag] = append(names, tag), field.Type
		}
	}
	return strings.Join(names, ", "), types
}

// Encode returns the JSON of a struct with yaml tags, which is YAML that Decode reads. It leaves out zero fields.
func Encode(value any) ([]byte, error) { return json.Marshal(tree(reflect.ValueOf(value))) }

// tree replaces structs by maps, which encoding/json sorts.
func tree(v reflect.Value) any {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return v.Interface().(time.Duration).String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return tree(v.Elem())
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = tree(v.Index(i))
		}
		return list
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag.Get("yaml")
			switch field := v.Field(i); {
			case tag == ",inline":
				maps.Copy(fields, tree(field).(map[string]any))
			case tag != "-" && !field.IsZero():
				fields[tag] = tree(field)
			}
		}
		return fields
	default:
		return v.Interface()
	}
}
