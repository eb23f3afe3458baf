// Protogen generates the Go code of our .proto files. It takes the place of the
// protoc binary, so that the Go toolchain is all one needs: protocompile reads the
// files, and the two standard plugins, pinned in tools/go.mod, write the code.
//
// From the root of the repository, with GOWORK=off because tools is a module
// outside the workspace:
//
//	go -C tools build -o ../bin/tools/ ./protogen \
//		google.golang.org/protobuf/cmd/protoc-gen-go \
//		google.golang.org/grpc/cmd/protoc-gen-go-grpc
//	bin/tools/protogen -plugins bin/tools client/api
//
// It compiles every .proto file below the given directory and writes the generated
// files next to it. A file goes by its full import path, such as
// github.com/kubernetes-csi/csi-proxy/client/api/disk/v1/api.proto: all those
// api.proto meet in one registry in the process of a driver, where a name can be
// used only once, and this is the name under which they were published.
//
// The output depends on the .proto files and the pinned plugins alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	plugins := flag.String("plugins", "bin/tools", "`directory` with protoc-gen-go and protoc-gen-go-grpc")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: protogen [-plugins directory] directory")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *plugins, flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "protogen: %v\n", err)
		os.Exit(1)
	}
}

// run generates the code of all .proto files below dir. Both plugins finish before
// anything is written, so a failure leaves the old code untouched.
func run(ctx context.Context, plugins, dir string) error {
	src, err := findSources(dir)
	if err != nil {
		return err
	}
	req, err := src.compile(ctx)
	if err != nil {
		return err
	}

	var generated []*pluginpb.CodeGeneratorResponse_File
	for _, plugin := range []struct {
		name   string
		params []string
	}{
		{name: "protoc-gen-go"},
		// Servers need not embed UnimplementedXServer: the fakes in drivers' tests do not.
		{name: "protoc-gen-go-grpc", params: []string{"require_unimplemented_servers=false"}},
	} {
		req.Parameter = new(strings.Join(append(plugin.params, src.params...), ","))
		files, err := runPlugin(ctx, filepath.Join(plugins, plugin.name), req)
		if err != nil {
			return err
		}
		generated = append(generated, files...)
	}
	return writeFiles(src.moduleDir, generated)
}
