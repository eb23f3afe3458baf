// Command caller is a driver for tests: it makes the calls given as arguments, one after
// the other, and prints an answer per line.
//
//	caller "v1.Disk/ListDiskIDs" 'v1.Disk/GetDiskStats {"diskNumber": 7}'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/call"
)

const timeout = 2 * time.Minute

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout) //nolint:forbidigo // this is main
	defer cancel()
	var caller call.Caller
	for _, text := range os.Args[1:] {
		fmt.Fprintln(os.Stdout, caller.Do(ctx, text))
	}
}
