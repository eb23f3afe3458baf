package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/control"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/strictyaml"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// DefaultControl is the value of Config.Control for an endpoint beside those of the API.
const DefaultControl = "default"

// ControlPath returns where Run serves the control service for Config.Control.
func ControlPath(address, socketDir string) string {
	if address != DefaultControl {
		return address
	}
	path := client.PipePath(control.Group, apiversion.NewVersionOrPanic(control.Version))
	if socketDir != "" && client.SocketDir() != "" {
		path = filepath.Join(socketDir, filepath.Base(path))
	}
	return path
}

// runControlled serves the API and the control service, which can restart the daemon and the node.
func runControlled(ctx context.Context, node *winsim.Node, cfg Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	daemons := &supervisor{launch: func() *process { return launch(ctx, node, cfg) }, failed: make(chan error, 1)}
	if err := daemons.start(); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		failed <- server.Run(ctx, server.Config{
			Endpoints:   []grpcapi.Endpoint{grpcapi.Private(control.Group, control.Version, &control.Desc, &changer{node: node, daemons: daemons})},
			StopTimeout: cfg.StopTimeout,
			Listen: func(ctx context.Context, _ grpcapi.Endpoint) (net.Listener, error) {
				return pipe.Listen(ctx, ControlPath(cfg.Control, cfg.SocketDir), pipe.Config{})
			},
			Ready: cfg.Ready,
		})
	}()
	var err error
	select {
	case err = <-daemons.failed:
	case err = <-failed:
		failed <- nil
	}
	stop()
	return errors.Join(err, <-failed, daemons.end())
}

// changer is the control service.
type changer struct {
	node    *winsim.Node
	daemons *supervisor

	mu     sync.Mutex // one change at a time
	faults []*winsim.Injection
}

var _ control.Server = (*changer)(nil)

// Apply makes the changes in YAML, up to the first that is wrong.
func (c *changer) Apply(_ context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var change Change
	document, err := strictyaml.Decode(strings.NewReader(in.GetValue()), "", &change)
	if err != nil {
		return nil, winerr.As(winerr.Invalid, "read change", "", err, "")
	}
	var changed Changed
	if field, err := c.apply(change, &changed); err != nil {
		if wrong, ok := errors.AsType[*winsim.ModelError](err); ok {
			field += "." + wrong.Field
		}
		if errors.Is(err, winerr.NotFound) {
			err = fmt.Errorf("%w; Describe lists what the node has", err)
		}
		return nil, fmt.Errorf("line %d: %s: %w", document.Line(field), field, err)
	}
	return text(changed)
}

// Describe describes the node.
func (c *changer) Describe(context.Context, *emptypb.Empty) (*wrapperspb.StringValue, error) {
	described := struct {
		winsim.Model `yaml:",inline"`
		// Fingerprints are hashes of the content of attached disks. A test compares them to see that nothing was written.
		Fingerprints map[uint32]string `yaml:"fingerprints"`
	}{withoutSecrets(c.node.Describe()), map[uint32]string{}}
	for _, d := range attached(described.Model) {
		if fingerprint, err := c.node.DiskFingerprint(d.Number); err == nil { // or it was detached since
			described.Fingerprints[d.Number] = fingerprint
		}
	}
	return text(described)
}

// text is a value in YAML.
func text(value any) (*wrapperspb.StringValue, error) {
	encoded, err := strictyaml.Encode(value)
	return wrapperspb.String(string(encoded)), winerr.Wrap("describe", "the node", err)
}

// withoutSecrets removes passwords from what Describe has made.
func withoutSecrets(m winsim.Model) winsim.Model {
	for _, server := range m.SMBServers {
		for i := range server.Accounts {
			server.Accounts[i].Password = ""
		}
	}
	for i := range m.SMBMappings {
		m.SMBMappings[i].Password = ""
	}
	m.ISCSI.Secret = ""
	for i, t := range m.ISCSI.Targets {
		if t.CHAP != nil {
			m.ISCSI.Targets[i].CHAP = &winsim.CHAP{User: t.CHAP.User}
		}
	}
	for _, logins := range [][]winsim.ISCSILogin{m.ISCSI.Logins, m.ISCSI.Sessions} {
		for i := range logins {
			logins[i].Secret = ""
		}
	}
	return m
}
