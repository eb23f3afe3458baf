//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/devices"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

// Config says what a rig is to be.
type Config struct {
	Preset string // which node is emulated
	// Files gives volumes directories for their files, so that they can be mounted. It needs a Wine that
	// stores links.
	Files bool
	// NoDaemon leaves out the daemon, for programs that use the library.
	NoDaemon bool
}

func (c Config) flags() []string {
	flags := []string{"-preset", c.Preset, "-reboot", rebootFile}
	if c.Files {
		flags = append(flags, "-files", `C:\volumes`)
	}
	return flags
}

// rebootFile is how the node server learns of a reboot.
const rebootFile = `C:\reboot`

// Rig is a daemon on an emulated node. It lives as long as its prefix.
type Rig struct {
	config     Config
	prefix     *prefix.Prefix
	nodeServer *prefix.Process
	daemon     *prefix.Process
}

// Start makes a rig of the files that Build has built, in a prefix that has none yet.
func Start(ctx context.Context, p *prefix.Prefix, config Config) (*Rig, error) {
	root, err := prefix.Root()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{driverFile, comServerFile, nodeServerFile, callerFile, daemonFile} {
		if err := p.Copy(filepath.Join(root, output, name)); err != nil {
			return nil, err
		}
	}
	model, err := devices.Model(config.Preset)
	if err != nil {
		return nil, err
	}
	if err := register(ctx, p, model); err != nil {
		return nil, err
	}
	for _, server := range model.SMBServers {
		for _, share := range server.Shares {
			if err := p.Share(server.Name, share.Name); err != nil {
				return nil, err
			}
		}
	}
	for _, command := range [][]string{
		{"sc", "create", "winsim", "type=", "kernel", "start=", "demand", "binpath=", `C:\` + driverFile},
		{"sc", "start", "winsim"},
	} {
		if _, err := p.Run(ctx, command[0], command[1:]...); err != nil {
			return nil, err
		}
	}
	r := &Rig{config: config, prefix: p}
	if err := r.startNodeServer(ctx); err != nil {
		return nil, err
	}
	return r, r.startDaemon(ctx)
}

func (r *Rig) startDaemon(ctx context.Context) (err error) {
	if r.config.NoDaemon {
		return nil
	}
	r.daemon, err = r.prefix.Start(ctx, `C:\`+daemonFile, "-v=2")
	return err
}

// register makes the disks of the node known to SetupDi, and the COM server to COM.
func register(ctx context.Context, p *prefix.Prefix, model winsim.Model) error {
	node, err := winsim.New(model)
	if err != nil {
		return err
	}
	disks, err := node.DiskDevices(ctx)
	if err != nil {
		return err
	}
	const file = `C:\rig.reg`
	if err := os.WriteFile(p.Path(file), []byte(devices.Registry(disks, `C:\`+comServerFile)), 0o600); err != nil {
		return err
	}
	_, err = p.Run(ctx, "regedit", "/S", file)
	return err
}

// startNodeServer starts it and waits until it can be asked.
func (r *Rig) startNodeServer(ctx context.Context) error {
	server, err := r.prefix.Start(ctx, `C:\`+nodeServerFile, r.config.flags()...)
	if err != nil {
		return err
	}
	r.nodeServer = server
	if r.config.Files {
		go r.provideFiles(ctx, server)
	}
	return r.awaitLine(ctx, "ready", 1)
}

// awaitLine waits until the node server has said a line so many times.
func (r *Rig) awaitLine(ctx context.Context, line string, times int) error {
	for strings.Count(r.nodeServer.Output(), line+"\n") < times {
		select {
		case <-r.nodeServer.Done():
			return errors.Join(errors.New("the node server has ended"), r.nodeServer.Wait())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// provideFiles shows Wine the directories of volumes as the node server asks for them, until that ends.
func (r *Rig) provideFiles(ctx context.Context, server *prefix.Process) {
	for read := 0; ; {
		output := server.OutputFrom(read)
		lines := output[:strings.LastIndexByte(output, '\n')+1]
		read += len(lines)
		for line := range strings.Lines(lines) {
			var name, dir string
			if n, _ := fmt.Sscanf(line, devices.FilesLine, &name, &dir); n == 2 {
				_ = r.prefix.Volume(name, dir) // without it, the node server waits and the test fails
			}
		}
		select {
		case <-server.Done():
			return
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Reboot restarts the machine. The emulated node lives on in the node server.
func (r *Rig) Reboot(ctx context.Context) error {
	if r.daemon != nil {
		if err := r.daemon.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		<-r.daemon.Done()
	}
	const done = "rebooted"
	before := strings.Count(r.nodeServer.Output(), done+"\n")
	if err := os.WriteFile(r.prefix.Path(rebootFile), nil, 0o600); err != nil {
		return err
	}
	if err := r.awaitLine(ctx, done, before+1); err != nil {
		return err
	}
	return r.startDaemon(ctx)
}

// Call makes calls to the daemon, as a driver does, and returns an answer for each.
func (r *Rig) Call(ctx context.Context, calls ...string) ([]string, error) {
	output, err := r.prefix.Run(ctx, `C:\`+callerFile, calls...)
	if err != nil {
		return nil, err
	}
	answers := strings.Split(strings.TrimSpace(output), "\n")
	if len(answers) != len(calls) {
		return nil, fmt.Errorf("%d calls, %d answers:\n%s", len(calls), len(answers), output)
	}
	return answers, nil
}

// Requests returns what the node server was asked, a line per request.
func (r *Rig) Requests() string { return r.nodeServer.Output() }

// DaemonLog returns what the daemon has logged.
func (r *Rig) DaemonLog() string {
	if r.daemon == nil {
		return ""
	}
	return r.daemon.Output()
}

// Stop stops the daemon, and returns what it came to.
func (r *Rig) Stop() error {
	if err := r.daemon.Interrupt(); err != nil {
		return err
	}
	return r.daemon.Wait()
}
