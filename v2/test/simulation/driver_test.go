package simulation

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// process is a process on the node, the daemon or a driver. It dies without clean-up: what it does afterwards does not
// reach the node.
type process struct {
	name    string
	run     *run
	machine win.Machine
	ctx     context.Context //nolint:containedctx // ends when the process dies
	kill    func()

	turn  chan struct{} // has a value while the driver starts
	verbs verbs         // guarded by turn
}

func (r *run) newProcess(name string) *process {
	ctx, cancel := context.WithCancelCause(klog.NewContext(context.Background(), r.logger()))
	p := &process{name: name, run: r, ctx: ctx, turn: make(chan struct{}, 1)}
	own := r.node.Process(p.carryOut)
	p.kill = sync.OnceFunc(func() {
		cancel(server.ErrKilled)
		own.(interface{ End() }).End()
	})
	p.machine = win.Intercept(own, p.admit)
	return p
}

// network is the pipes of the daemon, in memory.
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	open      []net.Conn
	deaths    atomic.Int64  // of the daemon
	changed   chan struct{} // closed when a listener comes
}

func newNetwork() *network {
	return &network{listeners: map[string]*bufconn.Listener{}, changed: make(chan struct{})}
}

func (n *network) listen(group, version string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := bufconn.Listen(64 << 10)
	n.listeners[group+"/"+version] = l
	close(n.changed)
	n.changed = make(chan struct{})
	return l, nil
}

// dial waits for a daemon that does not run, until ctx ends: retries of gRPC have random pauses.
func (n *network) dial(ctx context.Context, group, version string) (net.Conn, error) {
	for {
		n.mu.Lock()
		l, changed := n.listeners[group+"/"+version], n.changed
		n.mu.Unlock()
		if l != nil {
			if conn, err := l.DialContext(ctx); err == nil {
				n.mu.Lock()
				n.open = append(n.open, conn)
				n.mu.Unlock()
				return conn, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// endDaemon kills the daemon. Its connections end first: it answers nothing any more.
func (r *run) endDaemon() {
	r.network.mu.Lock()
	r.network.deaths.Add(1)
	clear(r.network.listeners)
	for _, conn := range r.network.open {
		_ = conn.Close()
	}
	r.network.open = nil
	r.network.mu.Unlock()
	synctest.Wait()
	r.world.daemon.kill()
	synctest.Wait()
}

// startDaemon starts the daemon, as Windows does after it died.
func (r *run) startDaemon() {
	r.world.daemon = r.newProcess("daemon")
	r.world.daemon.serve(r.network)
}

func (r *run) startAll() {
	r.startDaemon()
	for _, d := range r.world.drivers {
		d.start(r)
	}
}

func (r *run) killAll() {
	r.endDaemon()
	for _, d := range r.world.drivers {
		d.process.kill()
	}
}

// serve serves the API on a process' own hosts, until it dies.
func (p *process) serve(n *network) {
	p.run.running.Go(func() {
		if err := daemon.Serve(p.ctx, daemon.Config{
			Hosts: daemon.HostsOn(p.machine), WorkingDirs: []string{kubeletDir}, Heal: p.run.heal, Listen: n.listen,
			APIGroups: []string{"disk/v1", "volume/v1", "filesystem/v1", "smb/v1", "iscsi/v1alpha2", "system"},
		}); err != nil {
			p.run.fail(invariant5, "%s ended: %v", p.name, err)
		}
	})
}

// driver is a CSI driver. It survives its processes.
type driver struct {
	name    string
	process *process // changed by the scheduler alone
	open    func(ctx context.Context, p *process) (verbs, error)
}

// verbs are the node service of a driver.
type verbs interface {
	stage(ctx context.Context, v *volume) error
	publish(ctx context.Context, v *volume, pod int) error
	unpublish(ctx context.Context, v *volume, pod int) error
	unstage(ctx context.Context, v *volume) error
	expand(ctx context.Context, v *volume, size winsim.Size) error
	stats(ctx context.Context, v *volume, pod int) (total int64, err error)
	close()
}

// newDrivers are the drivers of a node. The first two serve all kinds of volumes.
func newDrivers() []*driver {
	return []*driver{
		{name: "mounter-library", open: func(ctx context.Context, p *process) (verbs, error) {
			hosts := daemon.HostsOn(p.machine)
			m, err := mounter.New(ctx, mounter.WithHosts(mounter.Hosts{
				Disk: hosts.Disk, Volume: hosts.Volume, Filesystem: hosts.Filesystem, SMB: hosts.SMB, ISCSI: hosts.ISCSI, Node: hosts.Node,
			}))
			return byMounter{m}, err
		}},
		{name: "mounter-daemon", open: func(ctx context.Context, p *process) (verbs, error) {
			m, err := mounter.New(ctx, mounter.WithDialer(p.run.network.dial))
			return byMounter{m}, err
		}},
		{name: "ebs", open: func(ctx context.Context, p *process) (verbs, error) { return openAPI(ctx, p.run.network) }},
		{name: "ebs-library", open: func(ctx context.Context, p *process) (verbs, error) { // its hosts are not the daemon's
			own := newNetwork()
			p.serve(own)
			return openAPI(ctx, own)
		}},
		{name: "smb", open: func(ctx context.Context, p *process) (verbs, error) {
			a, err := openAPI(ctx, p.run.network)
			return byShare{a}, err
		}},
	}
}

// start starts the driver's process.
func (d *driver) start(r *run) { d.process = r.newProcess(d.name) }

// do calls the driver. A process that dies answers nothing.
func (d *driver) do(ctx context.Context, call func(context.Context, verbs) error) error {
	p := d.process
	deaths := p.run.network.deaths.Load()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)() //nolint:contextcheck // the caller leaves, or the process dies
	vs, err := p.opened(ctx, d.open)
	if err == nil {
		err = call(klog.NewContext(ctx, klog.FromContext(p.ctx)), vs) //nolint:contextcheck // the log is the process'
	}
	deadline, _ := ctx.Deadline()
	if err != nil && (ctx.Err() != nil || !time.Now().Before(deadline) || p.isDead() || p.run.network.deaths.Load() != deaths) {
		return context.Canceled // how much such a caller learns is chance
	}
	return err
}

func (p *process) opened(ctx context.Context, open func(context.Context, *process) (verbs, error)) (verbs, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.turn }()
	if p.verbs != nil {
		return p.verbs, nil
	}
	vs, err := open(ctx, p)
	if err == nil {
		p.verbs = vs
		p.run.running.Go(func() {
			<-p.ctx.Done()
			vs.close()
		})
	}
	return vs, err
}

// byMounter is a driver on the mounter.
type byMounter struct{ *mounter.Mounter }

func (b byMounter) close() { _ = b.Close() }

// source is what the volume's attributes and secrets say.
func (v *volume) source() mounter.Source {
	switch {
	case v.server != "":
		return mounter.SMB{Remote: v.remote(), Username: account, Password: v.run.password()}
	case v.target != "":
		return mounter.ISCSI{Portals: []string{portal, portal2}, Target: v.target, LUN: v.lun, CHAP: v.chap}
	case v.keys == 0:
		return mounter.Disk{Page83: "SIM " + v.serial}
	default:
		return mounter.Disk{Serial: v.serial}
	}
}

func (b byMounter) stage(ctx context.Context, v *volume) error {
	_, err := b.Stage(ctx, mounter.StageRequest{Path: v.staging(), Source: v.source()})
	return err
}

func (b byMounter) publish(ctx context.Context, v *volume, pod int) error {
	return b.Publish(ctx, v.staging(), v.targetPath(pod))
}

func (b byMounter) unpublish(ctx context.Context, v *volume, pod int) error {
	return b.Unpublish(ctx, v.targetPath(pod))
}

// unstage has only the path, as NodeUnstageVolume.
func (b byMounter) unstage(ctx context.Context, v *volume) error {
	return b.Unstage(ctx, mounter.UnstageRequest{Path: v.staging(), Offline: v.offline})
}

func (b byMounter) expand(ctx context.Context, v *volume, size winsim.Size) error {
	_, err := b.Expand(ctx, v.staging(), int64(size))
	return err
}

func (b byMounter) stats(ctx context.Context, v *volume, pod int) (int64, error) {
	usage, err := b.Stats(ctx, v.targetPath(pod))
	if err == nil {
		_, err = b.Condition(ctx, v.targetPath(pod))
	}
	return usage.TotalBytes, err
}
