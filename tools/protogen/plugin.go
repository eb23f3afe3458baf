package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// runPlugin hands the request to a protoc plugin and returns the files it answers
// with. Plugins speak protobuf on standard input and output.
//
// https://protobuf.dev/reference/other/#plugins
func runPlugin(
	ctx context.Context, plugin string, req *pluginpb.CodeGeneratorRequest,
) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	input, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, plugin)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", plugin, err)
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &resp); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", plugin, err)
	}
	if resp.Error != nil {
		return nil, fmt.Errorf("%s: %s", plugin, resp.GetError())
	}
	return resp.File, nil
}

// writeFiles writes the generated files; their names are relative to dir.
func writeFiles(dir string, files []*pluginpb.CodeGeneratorResponse_File) error {
	for _, file := range files {
		if !filepath.IsLocal(file.GetName()) {
			return fmt.Errorf("a plugin wants to write %s outside of %s", file.GetName(), dir)
		}
		name := filepath.Join(dir, filepath.FromSlash(file.GetName()))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
