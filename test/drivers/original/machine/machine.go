// Package machine is the Windows machine on which the original project's integration tests run: an
// emulated node, in the names of the packages that those tests import. The tests call os, os/exec,
// path/filepath, io/ioutil and net/http; their copies import this package in place of each. Files
// are those of the node, by its mirror, and PowerShell changes the node.
package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/metrics"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/original/powershell"
)

const (
	hostname = "winsim-node"
	address  = "10.30.1.15"
)

// machine is a node with what PowerShell knows besides.
type machine struct {
	node     *winsim.Node
	files    string // the directory of the mirror
	metrics  *metrics.Metrics
	commands powershell.Commands

	virtualDisks map[string]*virtualDisk // by path
	targets      []*target
}

// here is the machine of this process. The tests know no other way to it.
var here *machine

// Main runs the tests of a suite on a new machine, and returns the exit code.
func Main(m *testing.M) int {
	code, err := runOn(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "emulate the Windows machine:", err)
		return 1
	}
	return code
}

func runOn(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "original")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	here, err = newMachine(filepath.Join(dir, "files"))
	if err != nil {
		return 0, err
	}
	sockets := filepath.Join(dir, "s")
	for name, value := range map[string]string{
		"CSI_PROXY_SOCKET_DIR": sockets,
		"ENABLE_ISCSI_TESTS":   "TRUE", // else the suites skip them
	} {
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ends with the process
	defer cancel()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- serve.Run(ctx, here.node, serve.Config{SocketDir: sockets, Observer: here.metrics, Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-done:
		return 0, err
	}
	code = m.Run()
	cancel()
	return code, <-done
}

// newMachine makes a Compute Engine node, because the tests of disks expect one.
func newMachine(files string) (*machine, error) {
	model := winsim.GCE()
	model.ISCSI.Portals = []winsim.ISCSIPortal{{Address: address}}
	model.SMBServers = []winsim.SMBServer{{Name: hostname}}
	node, err := winsim.New(model)
	if err != nil {
		return nil, err
	}
	report := func(err error) { fmt.Fprintln(os.Stderr, "mirror:", err) }
	if _, err := node.Mirror(files, report); err != nil {
		return nil, err
	}
	m := &machine{
		node: node, files: files, metrics: metrics.New(metrics.Config{Version: "original"}),
		virtualDisks: map[string]*virtualDisk{},
	}
	m.commands = m.allCommands()
	return m, m.offerTargets()
}

// NewDisk is New of pkg/disk/hostapi on this machine.
func NewDisk() diskapi.HostAPI { return here.node.Disk() }

// NewFilesystem is New of pkg/filesystem/hostapi on this machine.
func NewFilesystem() fsapi.HostAPI { return here.node.Filesystem() }

// NewISCSI is New of pkg/iscsi/hostapi on this machine.
func NewISCSI() iscsiapi.HostAPI { return here.node.ISCSI() }

// NewSMB is New of pkg/smb/hostapi on this machine.
func NewSMB() smbapi.HostAPI { return here.node.SMB() }

// NewSystem is New of pkg/system/hostapi on this machine.
func NewSystem() systemapi.HostAPI { return here.node.System() }

// NewVolume is New of pkg/volume/hostapi on this machine.
func NewVolume() volumeapi.HostAPI { return here.node.Volume() }
