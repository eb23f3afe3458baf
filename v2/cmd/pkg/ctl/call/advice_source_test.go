package call

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// serverTexts returns the string literals with a space of the packages whose errors reach
// clients, by position.
func serverTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, root := range []string{"../../../../pkg", "../../../../internal/host", "../../daemon/grpcapi", "../../daemon/server"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && slices.Contains([]string{"hosttest", "utils", "testdata"}, entry.Name()) {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
						texts[files.Position(literal.Pos()).String()] = text
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	return texts
}

// TestWithCommands_AllAdvice: no error of the server reaches an operator with the name of a method.
// It reads the texts from the sources, so that new advice fails here.
func TestWithCommands_AllAdvice(t *testing.T) {
	var names []string
	for _, name := range endpoint.All() {
		all := serviceOf(name.Group).Methods()
		for i := range all.Len() {
			names = append(names, string(all.Get(i).Name()))
		}
	}
	method := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b|\bset force\b`)
	found := 0
	for at, text := range serverTexts(t) {
		if !method.MatchString(text) {
			continue
		}
		found++
		if !strings.Contains(text, "; ") && !strings.HasPrefix(text, "a ") { // an advice alone, not a description
			text = "do x: wrong; " + text
		}
		if got := status.Convert(withCommands(status.Error(codes.Internal, text))).Message(); method.MatchString(got) {
			t.Errorf("%s: operators read %q; add the method to Commands", at, got)
		}
	}
	if found < 20 { // there are about 30
		t.Errorf("only %d texts name a method; the test looks in the wrong place", found)
	}
}
