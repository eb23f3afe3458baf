// Command docs writes the reference of csi-proxyctl into a directory: go run ./docs DIR. Cobra's generator would add
// two modules for man pages and reStructuredText.
package main

import (
	"fmt"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./docs DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1], command.Root()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
