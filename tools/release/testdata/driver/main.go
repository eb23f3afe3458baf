// Driver is the smallest node service: make test-adopt builds it outside of this repository, with the modules of a release.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/kubernetes-csi/csi-proxy/mounter"
)

func main() {
	m, err := mounter.New(context.Background())
	if err == nil {
		err = publish(context.Background(), m, os.Args[1], os.Args[2], os.Args[3])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func publish(ctx context.Context, m *mounter.Mounter, lun, staging, target string) error {
	_, err := m.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{LUN: lun, Adapter: "1"}})
	return errors.Join(err, m.Publish(ctx, staging, target))
}
