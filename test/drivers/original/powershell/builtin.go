package powershell

import (
	"encoding/json"
	"errors"
	"fmt"
)

// builtin are the commands that every machine has.
var builtin = Commands{
	"write-output": {Positional: []string{"InputObject"}, Run: func(c Call) ([]any, error) {
		return append(c.Input, several(c.Value("InputObject"))...), nil
	}},
	"out-null": {Run: func(Call) ([]any, error) { return nil, nil }},
	"where-object": {Positional: []string{"FilterScript"}, Run: func(c Call) ([]any, error) {
		return c.Filter("FilterScript")
	}},
	"select-object":  {Parameters: []string{"ExpandProperty"}, Positional: []string{"Property"}, Run: selectObject},
	"convertto-json": {Run: convertToJSON},
}

func selectObject(c Call) ([]any, error) {
	var results []any
	for _, item := range c.Input {
		object, ok := item.(Object)
		if !ok {
			return nil, fmt.Errorf("%q has no properties", Text(item))
		}
		if c.Has("ExpandProperty") {
			results = append(results, several(object.Get(c.Text("ExpandProperty")))...)
			continue
		}
		selected := Object{}
		for _, name := range several(c.Value("Property")) {
			selected[Text(name)] = object.Get(Text(name))
		}
		results = append(results, selected)
	}
	return results, nil
}

// convertToJSON writes one object. Objects in it become text, so that the result stays small.
func convertToJSON(c Call) ([]any, error) {
	object, ok := single(c.Input).(Object)
	if !ok {
		return nil, errors.New("the input is not one object")
	}
	plain := Object{}
	for name, value := range object {
		switch value.(type) {
		case nil, string, bool, int64, Enum:
			plain[name] = value
		default:
			plain[name] = Text(value)
		}
	}
	b, err := json.MarshalIndent(plain, "", "  ")
	return []any{string(b)}, err
}
