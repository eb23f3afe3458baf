// Package original runs the integration tests of the project that this one replaces against our
// code, on an emulated node. The tests come from the module proxy. Their copies differ from the
// released files only in imports, in the host that the library's tests create, and in helpers that
// need the original's own packages.
package original

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// machinePackage is what the tests import in place of parts of the standard library.
const machinePackage = "github.com/kubernetes-csi/csi-proxy/v2/test/drivers/original/machine"

// replaced are the packages that reach the machine on which the tests run.
var replaced = []string{"io/ioutil", "net/http", "os", "os/exec", "path/filepath"}

// hostPackage matches the packages of the library whose New returns the local host.
var hostPackage = regexp.MustCompile(`^github\.com/kubernetes-csi/csi-proxy/v2/pkg/([a-z]+)/hostapi$`)

// newHosts are the functions of the machine in place of New, by group.
var newHosts = map[string]string{
	"disk": "NewDisk", "filesystem": "NewFilesystem", "iscsi": "NewISCSI",
	"smb": "NewSMB", "system": "NewSystem", "volume": "NewVolume",
}

// rewrite returns the source of a file as it runs on the emulated machine, without the functions
// named.
func rewrite(name string, source []byte, without []string) ([]byte, error) {
	return change(name, source, without, useMachine)
}

// rewriteUnit returns the source of a unit test without the functions named. It has hosts of its own.
func rewriteUnit(name string, source []byte, without []string) ([]byte, error) {
	return change(name, source, without, func(*ast.File) error { return nil })
}

func change(name string, source []byte, without []string, imports func(*ast.File) error) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	removeFunctions(file, without)
	if err := imports(file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	removeUnusedImports(file)
	var b bytes.Buffer
	if err := format.Node(&b, files, file); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// useMachine replaces imports, and New of the hosts.
func useMachine(file *ast.File) error {
	hosts := map[string]string{} // local name of a host package: our function
	for _, spec := range file.Imports {
		original, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		local := path.Base(original)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		group := hostPackage.FindStringSubmatch(original)
		switch {
		case group != nil && newHosts[group[1]] == "":
			return fmt.Errorf("the machine has no host for %s", original)
		case group != nil:
			hosts[local] = newHosts[group[1]]
		case !slices.Contains(replaced, original):
			continue
		}
		spec.Path.Value, spec.Name = strconv.Quote(machinePackage), ast.NewIdent(local)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && hosts[x.Name] != "" && s.Sel.Name == "New" {
				s.Sel.Name = hosts[x.Name]
			}
		}
		return true
	})
	return nil
}

// removeFunctions removes functions with their comments.
func removeFunctions(file *ast.File, names []string) {
	file.Decls = slices.DeleteFunc(file.Decls, func(decl ast.Decl) bool {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !slices.Contains(names, f.Name.Name) {
			return false
		}
		start := f.Pos()
		if f.Doc != nil {
			start = f.Doc.Pos()
		}
		file.Comments = slices.DeleteFunc(file.Comments, func(c *ast.CommentGroup) bool { return c.Pos() >= start && c.End() <= f.End() })
		return true
	})
}

// version is the last part of the path of some packages, whose name is the part before it. The
// original's packages are named by it, so that both names count as used.
var version = regexp.MustCompile(`^v[0-9]+$`)

// removeUnusedImports removes the imports that only removed functions used.
func removeUnusedImports(file *ast.File) {
	used := map[string]bool{"_": true, ".": true}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	unused := func(spec *ast.ImportSpec) bool {
		if spec.Name != nil {
			return !used[spec.Name.Name]
		}
		imported := strings.Trim(spec.Path.Value, `"`)
		base := path.Base(imported)
		return !used[base] && (!version.MatchString(base) || !used[path.Base(path.Dir(imported))])
	}
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			d.Specs = slices.DeleteFunc(d.Specs, func(s ast.Spec) bool { return unused(s.(*ast.ImportSpec)) })
		}
	}
	file.Decls = slices.DeleteFunc(file.Decls, func(decl ast.Decl) bool {
		d, ok := decl.(*ast.GenDecl)
		return ok && d.Tok == token.IMPORT && len(d.Specs) == 0
	})
}
