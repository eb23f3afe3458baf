package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/bufbuild/protocompile/reporter"
	"golang.org/x/mod/modfile"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// sources are the .proto files below one directory of a Go module.
type sources struct {
	moduleDir  string            // directory with the module's go.mod
	modulePath string            // the module's name
	paths      []string          // import paths of the files, sorted
	disk       map[string]string // file name by import path
	params     []string          // plugin parameters that make output land next to its source
}

// findSources collects the .proto files below dir and names them by the module that
// dir is in.
func findSources(dir string) (*sources, error) {
	moduleDir, modulePath, err := findModule(dir)
	if err != nil {
		return nil, err
	}
	src := &sources{
		moduleDir:  moduleDir,
		modulePath: modulePath,
		disk:       map[string]string{},
		params:     []string{"module=" + modulePath},
	}
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".proto" {
			return err
		}
		absolute, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(moduleDir, absolute)
		if err != nil {
			return err
		}
		importPath := path.Join(modulePath, filepath.ToSlash(relative))
		src.paths = append(src.paths, importPath)
		src.disk[importPath] = name
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(src.paths) == 0 {
		return nil, fmt.Errorf("no .proto files below %s", dir)
	}
	slices.Sort(src.paths)
	return src, nil
}

func findModule(dir string) (moduleDir, modulePath string, err error) {
	moduleDir, err = filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	for {
		name := filepath.Join(moduleDir, "go.mod")
		data, err := os.ReadFile(name)
		if err == nil {
			if modulePath = modfile.ModulePath(data); modulePath == "" {
				return "", "", fmt.Errorf("%s: no module path", name)
			}
			return moduleDir, modulePath, nil
		}
		parent := filepath.Dir(moduleDir)
		if !errors.Is(err, fs.ErrNotExist) || parent == moduleDir {
			return "", "", fmt.Errorf("find the Go module of %s: %w", dir, err)
		}
		moduleDir = parent
	}
}

// compile links the files and describes them as protoc does to its plugins. It also
// completes src.params.
//
// All files are compiled together, because a driver registers all of them in one
// registry: two versions that declare the same full name fail here.
func (src *sources) compile(ctx context.Context) (*pluginpb.CodeGeneratorRequest, error) {
	var found []reporter.ErrorWithPos
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: src.open}),
		Reporter: reporter.NewReporter(
			func(err reporter.ErrorWithPos) error {
				found = append(found, err)
				return nil // continue, to show all errors at once
			},
			// Nothing published should compile with warnings.
			func(err reporter.ErrorWithPos) { found = append(found, err) },
		),
		SourceInfoMode: protocompile.SourceInfoStandard, // carries the comments
	}
	files, err := compiler.Compile(ctx, src.paths...)
	if len(found) > 0 {
		return nil, src.join(found)
	}
	if err != nil {
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

// open opens files for the compiler.
func (src *sources) open(importPath string) (io.ReadCloser, error) {
	name, ok := src.disk[importPath]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return os.Open(name)
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
		const options, goPackage = 8, 11 // field numbers in FileDescriptorProto and FileOptions
		at := file.SourceLocations().ByPath(protoreflect.SourcePath{options, goPackage})
		return fmt.Errorf("%s:%d:%d: go_package is %q, want %q for this directory",
			src.disk[file.Path()], at.StartLine+1, at.StartColumn+1, got, want)
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

// join makes one error of all, in the order of the files: the compiler works on several
// at once and finds errors in any order.
func (src *sources) join(found []reporter.ErrorWithPos) error {
	slices.SortStableFunc(found, func(a, b reporter.ErrorWithPos) int {
		p, q := a.GetPosition(), b.GetPosition()
		return cmp.Or(
			strings.Compare(p.Filename, q.Filename),
			cmp.Compare(p.Line, q.Line),
			cmp.Compare(p.Col, q.Col),
		)
	})
	var all []error
	for _, err := range found {
		at := err.GetPosition()
		if name, ok := src.disk[at.Filename]; ok {
			at.Filename = name // editors can open it
		}
		all = append(all, fmt.Errorf("%v: %w", at, err.Unwrap()))
	}
	return errors.Join(all...)
}
