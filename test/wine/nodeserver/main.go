//go:build windows

// Command nodeserver is the machine behind the driver of the rig: an emulated node that
// answers what the daemon asks of disks, volumes and WMI. It runs under Wine, beside the
// daemon. It says "ready" when it can be asked, and then writes a line for every request.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/devices"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/exchange"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/wmi"
)

// announceInterval is how soon a new volume has a device.
const announceInterval = 50 * time.Millisecond

// workers is how many requests are answered at once. A format takes a second, and the
// disks are to answer meanwhile.
const workers = 16

func main() {
	preset := flag.String("preset", "default", "which `node` to emulate")
	without := flag.String("without", "", "a `namespace` of WMI that the node does not have")
	flag.Parse()
	if err := run(context.Background(), *preset, *without); err != nil { //nolint:forbidigo // this is main
		log.Fatal(err)
	}
}

func run(ctx context.Context, preset, without string) error {
	model, err := devices.Model(preset)
	if err != nil {
		return err
	}
	model.RealTime = true // the daemon's
	node, err := winsim.New(model)
	if err != nil {
		return err
	}
	driver, err := exchange.OpenDriver()
	if err != nil {
		return err
	}
	defer driver.Close()
	// Not by the name that everybody uses, which becomes ours.
	wine, err := exchange.Open(`\\?\GLOBALROOT\Device\MountPointManager`)
	if err != nil {
		return err
	}
	defer wine.Close()
	namespaces := wmi.Storage(node)
	maps.Copy(namespaces, wmi.SMB(node))
	delete(namespaces, without)
	management := wmi.NewServer(namespaces, os.Stdout)
	server := devices.NewServer(devices.Config{Node: node, Add: driver.Add, Wine: wine.Control, WMI: management, Log: os.Stdout})
	if err := server.Announce(ctx); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	go func() {
		for range time.Tick(announceInterval) {
			if err := server.Announce(ctx); err != nil {
				log.Print(err)
			}
		}
	}()
	return exchange.Serve(workers, func(r exchange.Request) exchange.Reply { return server.Answer(ctx, r) })
}
