//go:build windows

// Command nodeserver is the machine behind the driver of the rig: an emulated node that
// answers what the daemon asks of disks, volumes and WMI. It runs under Wine, beside the
// daemon. It says "ready" when it can be asked, and then writes a line for every request. When a file with the path of
// -reboot appears, it removes the file, restarts the node and says "rebooted".
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/devices"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/exchange"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/wmi"
)

// announceInterval is how soon a new volume has a device, and a reboot begins.
const announceInterval = 50 * time.Millisecond

// workers is how many requests are answered at once. A format takes a second, and the
// disks are to answer meanwhile.
const workers = 16

func main() {
	preset := flag.String("preset", "default", "which `node` to emulate")
	reboot := flag.String("reboot", "", "`file` whose appearance restarts the node")
	files := flag.String("files", "", "`directory` for the files of volumes")
	flag.Parse()
	if err := run(context.Background(), *preset, *reboot, *files); err != nil { //nolint:forbidigo // this is main
		log.Fatal(err)
	}
}

func run(ctx context.Context, preset, reboot, files string) error {
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
	management := wmi.NewServer(namespaces, os.Stdout)
	config := devices.Config{Node: node, Add: driver.Add, Wine: wine.Control, WMI: management, Log: os.Stdout}
	if files != "" {
		config.Prepare = func(id win.VolumeID) error { return provideFiles(ctx, node, id, files) }
	}
	server := devices.NewServer(config)
	if err := server.Announce(ctx); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	go func() {
		for range time.Tick(announceInterval) {
			if reboot != "" && os.Remove(reboot) == nil {
				node.Reboot()
				fmt.Fprintln(os.Stdout, "rebooted")
			}
			if err := server.Announce(ctx); err != nil {
				log.Print(err)
			}
		}
	}()
	return exchange.Serve(workers, func(r exchange.Request) exchange.Reply { return server.Answer(ctx, r) })
}

// provideFiles gives a volume a directory for its files: its own, or drive C: for the volume with that letter.
// Wine finds it by a link that only the rig can make, in the directory of the prefix.
func provideFiles(ctx context.Context, node *winsim.Node, id win.VolumeID, dir string) error {
	root := filepath.Join(dir, devices.NameOf(id))
	switch c, err := node.VolumeOfDrive(ctx, `C:\`); {
	case err != nil:
		return err
	case c == id:
		root = `C:\`
	default:
		if err := os.MkdirAll(root, 0o700); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stdout, devices.FilesLine+"\n", devices.NameOf(id), root)
	for range time.Tick(announceInterval / 5) {
		if _, err := os.Stat(string(id)); err == nil {
			return nil
		}
	}
	return nil
}
