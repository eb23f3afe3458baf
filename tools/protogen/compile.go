package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// sources are the .proto files below one directory of a Go module.
type sources struct {
	moduleDir  string   // directory with the module's go.mod
	modulePath string   // the module's name
	paths      []string // import paths of the files, sorted
	params     []string // plugin parameters that make output land next to its source
}

// findSources collects the .proto files below dir and names them by the module that
// dir is in.
func findSources(dir string) (*sources, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}")
	list.Dir, list.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find the Go module of %s: %w", dir, err)
	}
	moduleDir, modulePath, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	src := &sources{moduleDir: moduleDir, modulePath: modulePath, params: []string{"module=" + modulePath}}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.Rel(moduleDir, dir)
	}
	if err != nil {
		return nil, err
	}
	dir = filepath.ToSlash(dir)
	err = fs.WalkDir(os.DirFS(moduleDir), dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".proto" {
			src.paths = append(src.paths, path.Join(modulePath, name))
		}
		return err
	})
	if err == nil && len(src.paths) == 0 {
		err = fmt.Errorf("no .proto files below %s", dir)
	}
	return src, err
}

// compile links the files and describes them as protoc does to its plugins. It also
// completes src.params.
//
// All files are compiled together, because a driver registers all of them in one
// registry: two versions that declare the same full name fail here.
func (src *sources) compile(ctx context.Context) (*pluginpb.CodeGeneratorRequest, error) {
	var warning error // nothing published should compile with one
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: func(importPath string) (io.ReadCloser, error) {
			name, ok := strings.CutPrefix(importPath, src.modulePath+"/")
			if !ok {
				return nil, fs.ErrNotExist
			}
			return os.Open(filepath.Join(src.moduleDir, filepath.FromSlash(name)))
		}}),
		Reporter:       reporter.NewReporter(nil, func(err reporter.ErrorWithPos) { warning = err }),
		SourceInfoMode: protocompile.SourceInfoStandard, // carries the comments
	}
	files, err := compiler.Compile(ctx, src.paths...)
	if err = cmp.Or(err, warning); err != nil {
		return nil, err
	}
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: src.paths}
	done := map[string]bool{}
	for _, file := range files {
		if err := src.setImportPath(file); err != nil {
			return nil, err
		}
		req.ProtoFile = appendWithImports(req.ProtoFile, file, done)
	}
	return req, nil
}

// setImportPath makes sure that the plugins write the code of the file next to it.
// A file without go_package gets its import path as a parameter: the oldest versions
// were published without the option, and adding it would change their descriptors.
func (src *sources) setImportPath(file linker.File) error {
	want := path.Dir(file.Path())
	switch got := file.Options().(*descriptorpb.FileOptions).GetGoPackage(); got {
	case want:
	case "":
		src.params = append(src.params, "M"+file.Path()+"="+want)
	default:
		return fmt.Errorf("%s: go_package is %q, want %q for this directory", file.Path(), got, want)
	}
	return nil
}

// appendWithImports appends the descriptor of file after those of its imports, the
// order that plugins expect.
func appendWithImports(
	to []*descriptorpb.FileDescriptorProto, file linker.File, done map[string]bool,
) []*descriptorpb.FileDescriptorProto {
	if done[file.Path()] {
		return to
	}
	done[file.Path()] = true
	for i := range file.Imports().Len() {
		to = appendWithImports(to, file.FindImportByPath(file.Imports().Get(i).Path()), done)
	}
	return append(to, protoutil.ProtoFromFileDescriptor(file))
}
