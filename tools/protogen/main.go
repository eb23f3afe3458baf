// Protogen generates the Go code of our .proto files. It replaces the protoc
// binary, so that the Go toolchain is enough: protocompile reads the files, and the
// two standard plugins, pinned in tools/go.mod, write the code. With -clients it
// also writes the package groups/<group>/<version> for each
// api/<group>/<version>, from client.tmpl.
//
// 'make generate' runs it.
//
// It compiles every .proto file below the given directory and writes the generated
// files next to it. It names a file by its full import path, such as
// github.com/kubernetes-csi/csi-proxy/client/api/disk/v1/api.proto. A driver
// registers all those api.proto in one registry, which needs unique names, and they
// were published under these names.
//
// The output depends only on the .proto files, the pinned plugins and client.tmpl.
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
	withClients := flag.Bool("clients", false, "write the client packages too")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: protogen [-plugins directory] [-clients] directory")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *plugins, *withClients, flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "protogen: %v\n", err)
		os.Exit(1)
	}
}

// run generates the code of all .proto files below dir. Both plugins finish before
// anything is written, so a failure leaves the old code untouched.
func run(ctx context.Context, plugins string, withClients bool, dir string) error {
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
	if withClients {
		files, err := clients(src.modulePath, req)
		if err != nil {
			return err
		}
		generated = append(generated, files...)
	}
	return writeFiles(src.moduleDir, generated)
}
