// A driver that calls the daemon.
package main

import (
	"context"
	"fmt"
	"os"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	disk "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
)

func main() {
	client, err := disk.NewClient()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	response, err := client.ListDiskLocations(context.Background(), &diskapi.ListDiskLocationsRequest{})
	fmt.Println(response, err)
}
