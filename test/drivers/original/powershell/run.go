package powershell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Object is a value with properties. Their names ignore case.
type Object map[string]any

// Get returns a property, or nil.
func (o Object) Get(name string) any {
	for key, value := range o {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return nil
}

// Enum is a value that PowerShell prints as a name and puts into JSON as a number.
type Enum struct {
	Name   string
	Number int
}

func (e Enum) String() string { return e.Name }

// MarshalJSON returns the number.
func (e Enum) MarshalJSON() ([]byte, error) { return fmt.Append(nil, e.Number), nil }

// Command is one command of the machine.
type Command struct {
	// Parameters are the names of the parameters. A call with another one fails.
	Parameters []string
	// Positional are the parameters that positional arguments set, in this order.
	Positional []string
	Run        func(Call) ([]any, error)
}

// Call is the call of a command.
type Call struct {
	// Input is what the stage before it in the pipeline returned; nil for the first stage.
	Input     []any
	arguments map[string]any // by lower-case name
	runner    *run
}

// Has reports whether the call has a parameter.
func (c Call) Has(name string) bool {
	_, ok := c.arguments[strings.ToLower(name)]
	return ok
}

// Value returns a parameter, or nil.
func (c Call) Value(name string) any { return c.arguments[strings.ToLower(name)] }

// Text returns a parameter as text.
func (c Call) Text(name string) string { return Text(c.Value(name)) }

// Int returns a parameter that must be a number.
func (c Call) Int(name string) (int64, error) {
	n, ok := c.Value(name).(int64)
	if !ok {
		return 0, fmt.Errorf("-%s: %q is not a number", name, c.Text(name))
	}
	return n, nil
}

// Switch reports whether a switch is on.
func (c Call) Switch(name string) bool { return truth(c.Value(name)) }

// Filter returns the objects of the input for which a script block is true.
func (c Call) Filter(name string) ([]any, error) {
	b, ok := c.Value(name).(block)
	if !ok {
		return nil, fmt.Errorf("-%s is not a script block", name)
	}
	old := c.runner.variables["_"]
	defer func() { c.runner.variables["_"] = old }()
	var found []any
	for _, item := range c.Input {
		c.runner.variables["_"] = item
		result, err := c.runner.script(b.script)
		if err != nil {
			return nil, err
		}
		if truth(single(result)) {
			found = append(found, item)
		}
	}
	return found, nil
}

// Commands are the commands of a machine by lower-case name, in addition to those that only work
// on values.
type Commands map[string]Command

// Run runs a script with environment variables, NAME=value, and returns the values that are left.
// The first error ends it.
func (c Commands) Run(s Script, env []string) ([]any, error) {
	r := &run{commands: maps.Clone(builtin), variables: map[string]any{"true": true, "false": false, "null": nil}}
	maps.Copy(r.commands, c)
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		r.variables["env:"+strings.ToLower(name)] = value
	}
	return r.script(s)
}

// The limits of one run. A script without loops can still double a list with each statement.
const (
	maxStatements = 10_000
	maxValues     = 10_000
	maxText       = 1 << 20
)

var errLimit = errors.New("the script does too much")

type run struct {
	commands   Commands
	variables  map[string]any
	statements int
}

func (r *run) script(s Script) ([]any, error) {
	var results []any
	for _, statement := range s.statements {
		if r.statements++; r.statements > maxStatements || len(results) > maxValues {
			return nil, errLimit
		}
		var values []any
		for i, stage := range statement.pipeline {
			if i > 0 && values == nil {
				values = []any{}
			}
			var err error
			if values, err = stage.eval(r, values); err != nil {
				return nil, err
			}
		}
		if statement.variable != "" {
			r.variables[statement.variable] = single(values)
		} else {
			results = append(results, values...)
		}
	}
	return results, nil
}

// single is how a variable holds the values of a pipeline.
func single(values []any) any {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return values[0]
	default:
		return values
	}
}

// several is the reverse of single.
func several(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

func truth(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case nil:
		return false
	case string:
		return v != ""
	case int64:
		return v != 0
	default:
		return true
	}
}

// Text is a value inside a string.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "True"
		}
		return "False"
	case []any:
		texts := make([]string, 0, len(v))
		for _, item := range v {
			texts = append(texts, Text(item))
		}
		return strings.Join(texts, " ")
	case Object:
		return "System.Object" // not its properties, which can have properties
	case block:
		return "{...}"
	default:
		return fmt.Sprint(v)
	}
}

// Print is what PowerShell prints of the values, one per line. It prints the properties of objects
// in alphabetical order.
func Print(values []any) string {
	var b strings.Builder
	for _, value := range values {
		object, ok := value.(Object)
		if !ok {
			b.WriteString(Text(value) + "\r\n")
			continue
		}
		var lines []string
		for key, value := range object {
			lines = append(lines, key+" : "+Text(value)+"\r\n")
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String()
}

func (e literal) eval(*run, []any) ([]any, error) { return several(e.value), nil }

func (e variable) eval(r *run, _ []any) ([]any, error) {
	return several(r.variables[e.name]), nil
}

func (e expandable) eval(r *run, _ []any) ([]any, error) {
	var b strings.Builder
	for _, part := range e.parts {
		values, err := part.eval(r, nil)
		if err != nil {
			return nil, err
		}
		if b.WriteString(Text(single(values))); b.Len() > maxText {
			return nil, errLimit
		}
	}
	return []any{b.String()}, nil
}

// eval returns the property of each value that has it.
func (e member) eval(r *run, _ []any) ([]any, error) {
	values, err := e.of.eval(r, nil)
	if err != nil {
		return nil, err
	}
	var found []any
	for _, value := range values {
		if object, ok := value.(Object); ok {
			found = append(found, several(object.Get(e.name))...)
		}
	}
	return found, nil
}

func (e nested) eval(r *run, _ []any) ([]any, error)     { return r.script(e.script) }
func (e block) eval(*run, []any) ([]any, error)          { return []any{e}, nil }
func (e invocation) eval(r *run, _ []any) ([]any, error) { return r.script(e.block.script) }

func (e list) eval(r *run, _ []any) ([]any, error) {
	items := []any{}
	for _, item := range e.items {
		values, err := item.eval(r, nil)
		if err != nil {
			return nil, err
		}
		if items = append(items, values...); len(items) > maxValues {
			return nil, errLimit
		}
	}
	return items, nil
}

func (e table) eval(r *run, _ []any) ([]any, error) {
	object := Object{}
	for i, key := range e.keys {
		name, err := key.eval(r, nil)
		if err != nil {
			return nil, err
		}
		value, err := e.values[i].eval(r, nil)
		if err != nil {
			return nil, err
		}
		object[Text(single(name))] = single(value)
	}
	return []any{object}, nil
}

// eval compares values as texts, without regard to case.
func (e comparison) eval(r *run, _ []any) ([]any, error) {
	left, err := e.left.eval(r, nil)
	if err != nil {
		return nil, err
	}
	right, err := e.right.eval(r, nil)
	if err != nil {
		return nil, err
	}
	if e.operator == "and" {
		return []any{truth(single(left)) && truth(single(right))}, nil
	}
	return []any{strings.EqualFold(Text(single(left)), Text(single(right)))}, nil
}

func (e command) eval(r *run, input []any) ([]any, error) {
	known, ok := r.commands[e.name]
	if !ok {
		return nil, fmt.Errorf("%s: there is no such command here", e.name)
	}
	call := Call{Input: input, arguments: map[string]any{}, runner: r}
	for _, p := range e.named {
		if !slices.ContainsFunc(append(slices.Clone(known.Positional), known.Parameters...), func(name string) bool { return strings.EqualFold(name, p.name) }) {
			return nil, fmt.Errorf("%s: there is no parameter -%s here", e.name, p.name)
		}
		if _, ok := call.arguments[p.name]; ok {
			return nil, fmt.Errorf("%s: -%s is set twice", e.name, p.name)
		}
		if p.value == nil {
			call.arguments[p.name] = true
			continue
		}
		values, err := p.value.eval(r, nil)
		if err != nil {
			return nil, err
		}
		call.arguments[p.name] = single(values)
	}
	free := slices.DeleteFunc(slices.Clone(known.Positional), call.Has)
	if len(e.positional) > len(free) {
		return nil, fmt.Errorf("%s: %d arguments instead of at most %d", e.name, len(e.positional), len(free))
	}
	for i, argument := range e.positional {
		values, err := argument.eval(r, nil)
		if err != nil {
			return nil, err
		}
		call.arguments[strings.ToLower(free[i])] = single(values)
	}
	results, err := known.Run(call)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	return results, nil
}
