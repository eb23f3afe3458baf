package architecture

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// limit is a row of the table of limits: constants of one file, and what they bound. In holds,
// {name} stands for the value of a constant, {name:B} for a number of bytes.
type limit struct {
	what  string
	holds string
	file  string
}

func printLimits(t *testing.T) string {
	t.Helper()
	b := &strings.Builder{}
	fmt.Fprint(b, "| What | Limit | Where |\n|---|---|---|\n")
	for _, l := range limits {
		fmt.Fprintf(b, "| %s | %s | `%s` |\n", l.what, l.fill(t), l.file)
	}
	return b.String()
}

// fill replaces the names of constants by their values.
func (l limit) fill(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), root+"/"+l.file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	names := 0
	text := replaceBraces(l.holds, func(name string) string {
		names++
		name, unit, _ := strings.Cut(name, ":")
		value, duration, err := evaluate(file, name)
		if err != nil {
			t.Errorf("the limit %q: %s: %v", l.what, l.file, err)
			return "?"
		}
		return show(value, duration, unit)
	})
	if names == 0 {
		t.Errorf("the limit %q names no constant", l.what)
	}
	return text
}

// replaceBraces replaces each {text}.
func replaceBraces(text string, replace func(string) string) string {
	b := &strings.Builder{}
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return b.String()
		}
		b.WriteString(replace(name))
		text = after
	}
}

// show prints a value as people write it: 30 s, 16 KiB, 20,000.
func show(value int64, duration bool, unit string) string {
	switch {
	case duration:
		for _, u := range []struct {
			size time.Duration
			name string
		}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
			if whole := value / int64(u.size); whole > 0 && value%int64(u.size) == 0 {
				return fmt.Sprintf("%d %s", whole, u.name)
			}
		}
		return time.Duration(value).String()
	case unit == "B":
		for _, u := range []struct {
			shift uint
			name  string
		}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
			if whole := value >> u.shift; whole > 0 && whole<<u.shift == value {
				return fmt.Sprintf("%d %s", whole, u.name)
			}
		}
		return fmt.Sprintf("%d bytes", value)
	default:
		digits := strconv.FormatInt(value, 10)
		for at := len(digits) - 3; at > 0; at -= 3 {
			digits = digits[:at] + "," + digits[at:]
		}
		return digits
	}
}

// evaluate finds a constant or a field of a composite literal, wherever it stands in a file, and
// computes its value. It knows numbers, the units of package time and constants of the file.
func evaluate(file *ast.File, name string) (value int64, duration bool, err error) {
	expression := find(file, name)
	if expression == nil {
		return 0, false, fmt.Errorf("there is no constant %s", name)
	}
	var compute func(ast.Expr) (constant.Value, error)
	compute = func(e ast.Expr) (constant.Value, error) {
		switch e := e.(type) {
		case *ast.BasicLit:
			return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
		case *ast.ParenExpr:
			return compute(e.X)
		case *ast.SelectorExpr:
			units := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
			if unit, ok := units[e.Sel.Name]; ok {
				duration = true
				return constant.MakeInt64(int64(unit)), nil
			}
		case *ast.Ident:
			if found := find(file, e.Name); found != nil {
				return compute(found)
			}
		case *ast.BinaryExpr:
			x, err := compute(e.X)
			if err != nil {
				return nil, err
			}
			y, err := compute(e.Y)
			if err != nil {
				return nil, err
			}
			if e.Op == token.SHL {
				shift, _ := constant.Uint64Val(y)
				return constant.Shift(x, token.SHL, uint(shift)), nil
			}
			return constant.BinaryOp(x, e.Op, y), nil
		}
		return nil, fmt.Errorf("cannot compute %s", name)
	}
	computed, err := compute(expression)
	if err != nil {
		return 0, false, err
	}
	value, exact := constant.Int64Val(constant.ToInt(computed))
	if !exact {
		return 0, false, fmt.Errorf("%s is not a whole number", name)
	}
	return value, duration, nil
}

// find returns what a constant, or a field of a composite literal, is set to.
func find(file *ast.File, name string) (expression ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, ident := range n.Names {
				if ident.Name == name && i < len(n.Values) {
					expression = n.Values[i]
				}
			}
		case *ast.KeyValueExpr:
			if ident, ok := n.Key.(*ast.Ident); ok && ident.Name == name && expression == nil {
				expression = n.Value
			}
		}
		return true
	})
	return expression
}
