// Package powershell runs the part of PowerShell that the original project's tests use: pipelines
// of commands, variables, strings with variables in them, properties, lists, hash tables and
// script blocks. The caller supplies the commands. There are no loops and no functions, so that
// every script ends.
package powershell

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// maxDepth limits nesting, and so the stack.
const maxDepth = 64

// Script is a parsed script.
type Script struct{ statements []statement }

// statement is a pipeline, whose result is assigned to a variable if it has a name.
type statement struct {
	variable string
	pipeline []expression
}

// expression is one stage of a pipeline or a part of it.
type expression interface {
	eval(*run, []any) ([]any, error)
}

// The kinds of expressions.
type (
	literal  struct{ value any }
	variable struct{ name string }
	// expandable is a string in double quotes.
	expandable struct{ parts []expression }
	// member is the property of a value.
	member struct {
		of   expression
		name string
	}
	// nested is a script in parentheses.
	nested struct{ script Script }
	list   struct{ items []expression }
	table  struct{ keys, values []expression }
	// block is a script block; invocation runs one.
	block      struct{ script Script }
	invocation struct{ block block }
	// comparison is -eq or -and.
	comparison struct {
		operator    string
		left, right expression
	}
	command struct {
		name       string
		positional []expression
		named      []parameter
	}
)

// parameter is a named parameter. Without a value it is a switch.
type parameter struct {
	name  string
	value expression
}

// Parse reads a script.
func Parse(source string) (Script, error) {
	p := &parser{source: []rune(source)}
	script, err := p.script(0)
	if err == nil && p.at < len(p.source) {
		err = fmt.Errorf("unexpected %q", p.source[p.at])
	}
	if err != nil {
		line := 1 + strings.Count(string(p.source[:min(p.at, len(p.source))]), "\n")
		return Script{}, fmt.Errorf("parse PowerShell, line %d: %w", line, err)
	}
	return script, nil
}

type parser struct {
	source []rune
	at     int
	depth  int
}

var errDepth = errors.New("nested too deeply")

// enter counts a level of nesting. Callers defer what it returns.
func (p *parser) enter() (leave func(), err error) {
	if p.depth++; p.depth > maxDepth {
		err = errDepth
	}
	return func() { p.depth-- }, err
}

func (p *parser) peek() rune { return p.peekAt(0) }

func (p *parser) peekAt(n int) rune {
	if p.at+n >= len(p.source) {
		return 0
	}
	return p.source[p.at+n]
}

func (p *parser) done() bool { return p.at >= len(p.source) }

func (p *parser) take(want rune) bool {
	if p.done() || p.peek() != want {
		return false
	}
	p.at++
	return true
}

func (p *parser) need(want rune) error {
	if p.take(want) {
		return nil
	}
	if p.done() {
		return fmt.Errorf("missing %q", want)
	}
	return fmt.Errorf("%q instead of %q", p.peek(), want)
}

// skip passes blanks and comments, and the ends of lines if lines is set.
func (p *parser) skip(lines bool) {
	for !p.done() {
		switch c := p.peek(); {
		case c == '\n' && !lines:
			return
		case unicode.IsSpace(c):
			p.at++
		case c == '#':
			for !p.done() && p.peek() != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

// script reads statements up to the closing character, which it leaves.
func (p *parser) script(closing rune) (Script, error) {
	leave, err := p.enter()
	defer leave()
	if err != nil {
		return Script{}, err
	}
	var s Script
	for {
		for p.skip(true); p.take(';'); p.skip(true) {
		}
		if p.done() || p.peek() == closing {
			return s, nil
		}
		statement, err := p.statement()
		if err != nil {
			return s, err
		}
		s.statements = append(s.statements, statement)
		p.skip(false)
		if !p.done() && p.peek() != '\n' && p.peek() != ';' && p.peek() != closing {
			return s, fmt.Errorf("unexpected %q", p.peek())
		}
	}
}

func (p *parser) statement() (statement, error) {
	start := p.at
	if p.peek() == '$' {
		if v, err := p.variable(); err == nil {
			if p.skip(false); p.peek() == '=' {
				p.at++
				p.skip(false)
				pipeline, err := p.pipeline()
				return statement{variable: v.name, pipeline: pipeline}, err
			}
		}
		p.at = start
	}
	pipeline, err := p.pipeline()
	return statement{pipeline: pipeline}, err
}

func (p *parser) pipeline() ([]expression, error) {
	var stages []expression
	for {
		stage, err := p.stage()
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage)
		if p.skip(false); !p.take('|') {
			return stages, nil
		}
		p.skip(true)
	}
}

// stage reads a command, or an expression if it starts like one.
func (p *parser) stage() (expression, error) {
	switch c := p.peek(); {
	case c == '&':
		p.at++
		p.skip(false)
		b, err := p.block()
		return invocation{b}, err
	case strings.ContainsRune(`$("'@{`, c) && c != 0, c >= '0' && c <= '9':
		return p.comparison()
	case isCommandRune(c):
		return p.command()
	case c == 0:
		return nil, errors.New("a command is missing")
	default:
		return nil, fmt.Errorf("unexpected %q", c)
	}
}

func isCommandRune(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_'
}

// comparison reads values joined by -eq and -and, which binds less.
func (p *parser) comparison() (expression, error) {
	return p.joined("and", func() (expression, error) { return p.joined("eq", p.values) })
}

func (p *parser) joined(operator string, operand func() (expression, error)) (expression, error) {
	left, err := operand()
	for err == nil {
		if p.skip(false); !p.takeOperator(operator) {
			return left, nil
		}
		p.skip(true)
		var right expression
		right, err = operand()
		left = comparison{operator, left, right}
	}
	return nil, err
}

func (p *parser) takeOperator(name string) bool {
	end := p.at + 1 + len(name)
	if p.peek() != '-' || end > len(p.source) || !strings.EqualFold(string(p.source[p.at+1:end]), name) {
		return false
	}
	if end < len(p.source) && isCommandRune(p.source[end]) {
		return false
	}
	p.at = end
	return true
}

// values reads a value, or several with commas between.
func (p *parser) values() (expression, error) {
	return p.commaList(func() (expression, error) { return p.value() })
}

func (p *parser) commaList(item func() (expression, error)) (expression, error) {
	first, err := item()
	if err != nil {
		return nil, err
	}
	items := []expression{first}
	for {
		before := p.at
		if p.skip(false); !p.take(',') {
			p.at = before
			break
		}
		p.skip(true)
		next, err := item()
		if err != nil {
			return nil, err
		}
		items = append(items, next)
	}
	if len(items) == 1 {
		return first, nil
	}
	return list{items}, nil
}

// value reads a value and its properties.
func (p *parser) value() (expression, error) {
	leave, err := p.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	v, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.members(v)
}

func (p *parser) members(of expression) (expression, error) {
	for n := 0; p.peek() == '.' && unicode.IsLetter(p.peekAt(1)); n++ {
		if n == maxDepth {
			return nil, errDepth
		}
		p.at++
		of = member{of, p.word(isNameRune)}
	}
	return of, nil
}

func (p *parser) primary() (expression, error) {
	switch c := p.peek(); {
	case c == '$' && p.peekAt(1) == '(':
		p.at += 2
		return p.parenthesis()
	case c == '$':
		return p.variable()
	case c == '(':
		p.at++
		return p.parenthesis()
	case c == '\'':
		return p.singleQuoted()
	case c == '"':
		return p.doubleQuoted()
	case c == '@' && p.peekAt(1) == '(':
		p.at += 2
		inner, err := p.parenthesis()
		return list{[]expression{inner}}, err
	case c == '@' && p.peekAt(1) == '{':
		p.at += 2
		return p.table()
	case c == '{':
		return p.block()
	case c >= '0' && c <= '9':
		return number(p.word(isNameRune))
	case c == 0:
		return nil, errors.New("a value is missing")
	default:
		return nil, fmt.Errorf("unexpected %q", c)
	}
}

func (p *parser) parenthesis() (nested, error) {
	s, err := p.script(')')
	if err == nil {
		err = p.need(')')
	}
	return nested{s}, err
}

func (p *parser) block() (block, error) {
	if err := p.need('{'); err != nil {
		return block{}, err
	}
	s, err := p.script('}')
	if err == nil {
		err = p.need('}')
	}
	return block{s}, err
}

func isNameRune(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' }

func (p *parser) word(belongs func(rune) bool) string {
	start := p.at
	for !p.done() && belongs(p.peek()) {
		p.at++
	}
	return string(p.source[start:p.at])
}

// variable reads $name, ${name}, $_ or $scope:name.
func (p *parser) variable() (variable, error) {
	if err := p.need('$'); err != nil {
		return variable{}, err
	}
	braces := p.take('{')
	name := p.word(isNameRune)
	if p.peek() == ':' && isNameRune(p.peekAt(1)) {
		p.at++
		name += ":" + p.word(isNameRune)
	}
	if name == "" {
		return variable{}, errors.New("a variable has no name")
	}
	if braces {
		if err := p.need('}'); err != nil {
			return variable{}, err
		}
	}
	return variable{strings.ToLower(name)}, nil
}

func (p *parser) singleQuoted() (expression, error) {
	p.at++
	var b strings.Builder
	for !p.done() {
		c := p.peek()
		p.at++
		if c == '\'' && !p.take('\'') { // two are one
			return literal{b.String()}, nil
		}
		b.WriteRune(c)
	}
	return nil, errors.New("a string has no end")
}

// doubleQuoted reads a string. A grave accent escapes the next character.
func (p *parser) doubleQuoted() (expression, error) {
	p.at++
	var parts []expression
	var b strings.Builder
	add := func(e expression) {
		if b.Len() > 0 {
			parts = append(parts, literal{b.String()})
			b.Reset()
		}
		if e != nil {
			parts = append(parts, e)
		}
	}
	for !p.done() {
		c := p.peek()
		switch {
		case c == '$' && p.peekAt(1) == '(':
			p.at += 2
			inner, err := p.parenthesis()
			if err != nil {
				return nil, err
			}
			add(inner)
			continue
		case c == '$' && (isNameRune(p.peekAt(1)) || p.peekAt(1) == '{'):
			v, err := p.variable()
			if err != nil {
				return nil, err
			}
			add(v)
			continue
		}
		p.at++
		switch {
		case c == '"' && !p.take('"'): // two are one
			add(nil)
			return expandable{parts}, nil
		case c == '`' && !p.done():
			c = p.peek()
			p.at++
		}
		b.WriteRune(c)
	}
	return nil, errors.New("a string has no end")
}

func (p *parser) table() (expression, error) {
	var t table
	for {
		for p.skip(true); p.take(';'); p.skip(true) {
		}
		if p.take('}') {
			return t, nil
		}
		var key expression
		if name := p.word(isNameRune); name != "" {
			key = literal{name}
		} else {
			var err error
			if key, err = p.value(); err != nil {
				return nil, err
			}
		}
		p.skip(false)
		if err := p.need('='); err != nil {
			return nil, err
		}
		p.skip(true)
		value, err := p.values()
		if err != nil {
			return nil, err
		}
		t.keys, t.values = append(t.keys, key), append(t.values, value)
	}
}

// units are the suffixes of numbers.
var units = map[string]int64{"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}

func number(word string) (expression, error) {
	digits := strings.TrimRightFunc(word, func(c rune) bool { return c < '0' || c > '9' })
	unit, ok := units[strings.ToLower(word[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n > math.MaxInt64/unit {
		return nil, fmt.Errorf("%q is not a number", word)
	}
	return literal{n * unit}, nil
}

// command reads a name and its arguments. A parameter takes the argument that follows it, so that
// a switch must not stand before a positional argument.
func (p *parser) command() (expression, error) {
	c := command{name: strings.ToLower(p.word(isCommandRune))}
	for {
		p.skip(false)
		if p.endOfCommand() {
			return c, nil
		}
		if p.peek() == '-' && unicode.IsLetter(p.peekAt(1)) {
			p.at++
			param := parameter{name: strings.ToLower(p.word(isNameRune))}
			colon := p.take(':')
			if p.skip(false); colon || !p.endOfCommand() && (p.peek() != '-' || !unicode.IsLetter(p.peekAt(1))) {
				var err error
				if param.value, err = p.arguments(); err != nil {
					return nil, err
				}
			}
			c.named = append(c.named, param)
			continue
		}
		argument, err := p.arguments()
		if err != nil {
			return nil, err
		}
		c.positional = append(c.positional, argument)
	}
}

func (p *parser) endOfCommand() bool {
	return p.done() || strings.ContainsRune("\n;|)}", p.peek())
}

func (p *parser) arguments() (expression, error) { return p.commaList(p.argument) }

// argument reads a value, or a word that needs no quotes, such as a path.
func (p *parser) argument() (expression, error) {
	if p.done() || strings.ContainsRune(`$("'@{`, p.peek()) {
		return p.value()
	}
	word := p.word(func(c rune) bool {
		return !unicode.IsSpace(c) && !strings.ContainsRune("|;,(){}\"'$&", c)
	})
	if word == "" {
		return nil, fmt.Errorf("unexpected %q", p.peek())
	}
	if word[0] >= '0' && word[0] <= '9' {
		if n, err := number(word); err == nil {
			return n, nil
		}
	}
	return literal{word}, nil
}
