package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestNoInit keeps imports free of side effects. An init function among what the original
// imported panicked where WMI was missing, and took whole drivers down at their start
// (https://github.com/kubernetes-csi/csi-proxy/issues/411).
//
// What protoc-gen-go writes registers its messages there, and only there. The library may not
// import it, by another rule.
func TestNoInit(t *testing.T) {
	err := filepath.WalkDir("../../..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if nested := err == nil && name != "../../.."; nested || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := hasInit(name, source)
		if found {
			t.Errorf("%s has an init function: importing a package must not do anything (csi-proxy#411)", name)
		}
		return err
	})
	require.NoError(t, err)
}

// hasInit reports whether the file belongs to a package that others can import, and does
// something when they do.
func hasInit(name string, source []byte) (bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil || file.Name.Name == "main" {
		return false, err
	}
	return slices.ContainsFunc(file.Decls, func(decl ast.Decl) bool {
		f, ok := decl.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == "init"
	}), nil
}
