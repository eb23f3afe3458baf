package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"
)

// writeModule makes a Go module example.org/m in a temporary directory.
func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/m\n"
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(content), 0o644))
	}
	return dir
}

func TestCompile(t *testing.T) {
	dir := writeModule(t, map[string]string{
		"api/a/api.proto": "syntax = \"proto3\";\npackage a;\nimport \"example.org/m/api/b/api.proto\";\n" +
			"option go_package = \"example.org/m/api/a\";\n// Says A.\nmessage A { b.B b = 1; }\n",
		"api/b/api.proto": "syntax = \"proto3\";\npackage b;\nmessage B {}\n",
	})
	src, err := findSources(filepath.Join(dir, "api"))
	must(t, err)
	req, err := src.compile(t.Context())
	must(t, err)

	if want := []string{"example.org/m/api/a/api.proto", "example.org/m/api/b/api.proto"}; !slices.Equal(req.FileToGenerate, want) {
		t.Errorf("files to generate: %q, want %q", req.FileToGenerate, want)
	}
	var order []string
	for _, file := range req.ProtoFile {
		order = append(order, file.GetName())
	}
	if want := []string{"example.org/m/api/b/api.proto", "example.org/m/api/a/api.proto"}; !slices.Equal(order, want) {
		t.Errorf("descriptors: %q, want imports first: %q", order, want)
	}
	if want := []string{"module=example.org/m", "Mexample.org/m/api/b/api.proto=example.org/m/api/b"}; !slices.Equal(src.params, want) {
		t.Errorf("parameters: %q, want %q", src.params, want)
	}
	commented := slices.ContainsFunc(req.ProtoFile[1].SourceCodeInfo.Location, func(at *descriptorpb.SourceCodeInfo_Location) bool {
		return at.GetLeadingComments() == " Says A.\n"
	})
	if !commented {
		t.Error("the comment is lost")
	}
}

func TestCompileErrorsNameFileAndLine(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string // parts of the text, in this order
	}{
		{
			name:  "a mistake",
			files: map[string]string{"api/a.proto": "syntax = \"proto3\";\nmessage A { Missing m = 1; }\n"},
			want:  []string{"a.proto:2:13: ", "Missing"},
		},
		{
			name: "one name in two files",
			files: map[string]string{
				"api/a.proto": "syntax = \"proto3\";\nmessage A {}\n",
				"api/b.proto": "syntax = \"proto3\";\nmessage A {}\n",
			},
			want: []string{".proto:2:9: ", `symbol "A" already defined at`},
		},
		{
			name:  "unused import",
			files: map[string]string{"api/a.proto": "syntax = \"proto3\";\nimport \"google/protobuf/any.proto\";\n"},
			want:  []string{"a.proto:2:1: ", "not used"},
		},
		{
			name:  "code for another directory",
			files: map[string]string{"api/a.proto": "syntax = \"proto3\";\n\noption go_package = \"example.org/m/b\";\n"},
			want:  []string{"a.proto: ", `"example.org/m/b"`, `"example.org/m/api"`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			src, err := findSources(filepath.Join(writeModule(t, test.files), "api"))
			must(t, err)
			_, err = src.compile(t.Context())
			if err == nil {
				t.Fatal("compiled")
			}
			rest := err.Error()
			for _, part := range test.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("no %q (of %q, in this order) in\n%v", part, test.want, err)
				}
				rest = after
			}
		})
	}
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
