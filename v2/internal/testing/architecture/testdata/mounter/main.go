// Package main stands for a driver that uses the mounter.
package main

import (
	"context"
	"log"

	"github.com/kubernetes-csi/csi-proxy/mounter"
)

func main() {
	m, err := mounter.New(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	var source mounter.Source = mounter.ISCSI{Portals: []string{"10.0.0.10"}, Target: "iqn.2001-04.com.example:storage"}
	if _, err := m.Stage(context.Background(), mounter.StageRequest{Path: "/var/lib/kubelet/staging", Source: source}); err != nil {
		log.Fatal(err)
	}
}
