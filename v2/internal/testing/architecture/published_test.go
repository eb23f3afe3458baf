package architecture

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestPublished finds each line of testdata/published.txt in the library: what drivers compile against, as it was
// published. Structures may get more fields. Interfaces may not get more methods than the original has merged, since fakes
// that drivers have written would lack them, so one line has all of them. Arguments of functions New may be added: testdata/library calls them.
func TestPublished(t *testing.T) {
	published, err := os.ReadFile("testdata/published.txt")
	require.NoError(t, err)
	for _, goos := range []string{"linux", "windows"} {
		lines := exported(t, goos, "disk", "filesystem", "iscsi", "smb", "system", "volume")
		for line := range strings.Lines(string(published)) {
			if !slices.Contains(lines, strings.TrimSpace(line)) {
				t.Errorf("%s: the library has no %s", goos, line)
			}
		}
	}
}

// exported describes what the packages of groups, and of their hosts, export.
func exported(t *testing.T, goos string, groups ...string) (lines []string) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for _, group := range groups {
		args = append(args, "../../../pkg/"+group, "../../../pkg/"+group+"/hostapi")
	}
	list := exec.Command("go", args...)
	list.Env = append(os.Environ(), "GOOS="+goos)
	output, err := list.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.FieldsSeq(string(output)) {
		name, file, _ := strings.Cut(line, "=")
		files[name] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	short := func(p *types.Package) string { return strings.TrimPrefix(shorten(p.Path()), "v2/pkg/") }
	text := func(what types.Type) string {
		if f, ok := what.(*types.Signature); ok { // names of parameters may change
			what = types.NewSignatureType(nil, nil, nil, unnamed(f.Params()), unnamed(f.Results()), f.Variadic())
		}
		return types.TypeString(what, short)
	}
	for path := range files {
		if name, ok := strings.CutPrefix(shorten(path), "v2/pkg/"); !ok || !slices.Contains(groups, strings.TrimSuffix(name, "/hostapi")) {
			continue
		}
		p, err := from.Import(path)
		require.NoError(t, err)
		for _, name := range p.Scope().Names() {
			object := p.Scope().Lookup(name)
			line := short(p) + "." + name + " " + text(object.Type())
			switch object := object.(type) {
			case *types.Const:
				line += " = " + object.Val().String()
			case *types.TypeName:
				line = short(p) + "." + name
				lines = append(lines, members(line, object.Type(), text)...)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func unnamed(all *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range all.Variables() {
		vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
	}
	return types.NewTuple(vars...)
}

// members describes fields, and the methods of a pointer or an interface.
func members(name string, of types.Type, text func(types.Type) string) (lines []string) {
	if s, ok := of.Underlying().(*types.Struct); ok {
		for field := range s.Fields() {
			lines = append(lines, name+"."+field.Name()+" "+text(field.Type()))
		}
	}
	if i, ok := of.Underlying().(*types.Interface); ok {
		all := name + ":"
		for method := range i.Methods() {
			all += fmt.Sprintf(" %s%s;", method.Name(), strings.TrimPrefix(text(method.Signature()), "func"))
		}
		return append(lines, all)
	}
	for method := range types.NewMethodSet(types.NewPointer(of)).Methods() {
		lines = append(lines, "(*"+name+")."+method.Obj().Name()+strings.TrimPrefix(text(method.Type()), "func"))
	}
	return lines
}
