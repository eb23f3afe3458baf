package winsim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// LoadModel reads a Model in YAML. Errors are *ModelError with name, usually the file name, the
// line and the field.
//
//	volumes:
//	  - {id: 0c51a9e0-0000-0000-0000-100000000000, letter: C}
//	files:
//	  - path: C:\var\lib\kubelet\pods
//	  - path: C:\var\lib\kubelet\link
//	    symlink: C:\var\lib\kubelet\pods
func LoadModel(r io.Reader, name string) (Model, error) {
	var model Model
	root, err := decode(r, name, &model)
	if err != nil {
		return Model{}, err
	}
	// Some mistakes show only when the node is created, such as a file in the place of a
	// directory.
	_, err = New(model)
	return model, withLine(err, name, root)
}

// LoadFaults reads a list of Faults in YAML: a mapping with the one key "faults".
//
//	faults:
//	  - {call: CreateDirectory, object: 'C:\var\*', nth: 2, times: 1, error: 5}
//	  - {call: FileInfo, chance: 0.01, delay: 50ms}
func LoadFaults(r io.Reader, name string) ([]Fault, error) {
	var list struct {
		Faults []Fault `yaml:"faults"`
	}
	root, err := decode(r, name, &list)
	if err != nil {
		return nil, err
	}
	for i, f := range list.Faults {
		if err := f.validate(); err != nil {
			err.Field = field("faults", i, err.Field)
			return nil, withLine(err, name, root)
		}
	}
	return list.Faults, nil
}

// decode reads exactly one YAML document into out, a pointer to a struct. It refuses unknown
// keys, so that a misspelt field does not silently mean its default.
func decode(r io.Reader, name string, out any) (*yaml.Node, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, &ModelError{File: name, Problem: "the file is empty"}
	case err != nil:
		return nil, syntaxError(name, err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &ModelError{File: name, Line: second.Line, Problem: "the file has more than one YAML document"}
	}
	root := document.Content[0]
	if err := checkFields(root, reflect.TypeOf(out).Elem(), ""); err != nil {
		err.File = name
		return nil, err
	}
	if err := root.Decode(out); err != nil {
		return nil, syntaxError(name, err)
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntaxError moves the line number from the YAML library's text to ModelError.Line.
func syntaxError(name string, err error) *ModelError {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	problem := &ModelError{File: name, Problem: text}
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		problem.Line, _ = strconv.Atoi(match[1])
		problem.Problem = strings.Replace(text, match[0], "", 1)
	}
	return problem
}

// checkFields compares a document with its type before decoding: only here are line and path of
// each field known.
func checkFields(node *yaml.Node, want reflect.Type, path string) *ModelError {
	problem := func(format string, args ...any) *ModelError {
		return &ModelError{Line: node.Line, Field: path, Problem: fmt.Sprintf(format, args...)}
	}
	if node.Kind == yaml.AliasNode {
		return problem("anchors and aliases are not supported")
	}
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	kind := want.Kind()
	if want == reflect.TypeFor[time.Time]() {
		kind = reflect.String // how it is written
	}
	switch kind {
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
				return &ModelError{Line: key.Line, Field: path, Problem: "a key must be a single word"}
			case !known:
				return &ModelError{Line: key.Line, Field: inner, Problem: "unknown field; use one of " + keys}
			case seen[key.Value]:
				return &ModelError{Line: key.Line, Field: inner, Problem: "duplicate field"}
			}
			seen[key.Value] = true
			if key.Style == yaml.DoubleQuotedStyle && fieldType == reflect.TypeFor[time.Duration]() && value.ShortTag() == "!!int" {
				value.Tag, value.Value = "!!str", value.Value+"ns" // Go's JSON has no unit
			}
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
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration such as 50ms"
	case reflect.TypeFor[Size]():
		return "size such as 10GiB"
	}
	return t.String()
}

// withLine adds file and line to an error that names a field of a decoded document.
func withLine(err error, name string, root *yaml.Node) error {
	var problem *ModelError
	if !errors.As(err, &problem) {
		return err
	}
	problem.File = name
	problem.Line = lineOf(root, problem.Field)
	return problem
}

// lineOf finds the line of a field such as files[2].volume, or of its nearest existing parent.
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
		if tag := field.Tag.Get("yaml"); tag != "-" {
			names, types[tag] = append(names, tag), field.Type
		}
	}
	return strings.Join(names, ", "), types
}
