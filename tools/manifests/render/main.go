// Render writes the plain manifests, deploy/manifests, from the Helm chart, and the table in the
// chart's README. 'make generate' runs it in the module's directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubernetes-csi/csi-proxy/tools/manifests"
)

const preamble = "# Rendered from " + manifests.ChartDir + " by 'make generate'; do not edit.\n"

func main() {
	if err := run(".."); err != nil {
		fmt.Fprintf(os.Stderr, "render: %v\n", err)
		os.Exit(1)
	}
}

func run(root string) error {
	for _, set := range manifests.Sets {
		text, err := manifests.RenderSet(root, set)
		if err != nil {
			return err
		}
		file := filepath.Join(root, set.Manifest)
		if err := os.WriteFile(file, append([]byte(preamble), text...), 0o644); err != nil {
			return err
		}
	}
	readme, err := manifests.Readme(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, manifests.ReadmeFile), readme, 0o644)
}
