package api_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// odd is a node whose initiator gives answers that the emulator has no model for.
type odd struct {
	*winsim.Node
	devices  func() ([]win.SessionDevice, error)
	sessions func([]win.Session) []win.Session
	logout   func() error
	login    func(win.Login) error // before the node's own
}

func (o *odd) Login(ctx context.Context, login win.Login) (win.SessionID, error) {
	if o.login != nil {
		if err := o.login(login); err != nil {
			return win.SessionID{}, err
		}
	}
	return o.Node.Login(ctx, login)
}

func (o *odd) Sessions(ctx context.Context) ([]win.Session, error) {
	all, err := o.Node.Sessions(ctx)
	if o.sessions != nil {
		all = o.sessions(all)
	}
	return all, err
}

func (o *odd) DevicesForSession(ctx context.Context, id win.SessionID) ([]win.SessionDevice, error) {
	if o.devices != nil {
		return o.devices()
	}
	return o.Node.DevicesForSession(ctx, id)
}

func (o *odd) Logout(ctx context.Context, id win.SessionID) error {
	if o.logout != nil {
		return o.logout()
	}
	return o.Node.Logout(ctx, id)
}

func disks(host iscsiapi.HostAPI) ([]string, error) { return host.GetTargetDisks(portal(), target) }

func wantDisks(t *testing.T, host iscsiapi.HostAPI, want ...string) {
	t.Helper()
	if got, err := disks(host); err != nil || !slices.Equal(got, want) {
		t.Errorf("the disks are %q, %v, want %q", got, err, want)
	}
}

func TestGetTargetDisks_WaitsForThem(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*winsim.Model)
		rescans int
		atLeast time.Duration
	}{
		"at once":         {func(m *winsim.Model) { m.ISCSI.PnPDelay = 0 }, 0, 0},
		"soon":            {func(m *winsim.Model) { m.ISCSI.PnPDelay = time.Second }, 0, time.Second},
		"late":            {func(m *winsim.Model) { m.ISCSI.PnPDelay = 29 * time.Second }, 1, 29 * time.Second},
		"found by rescan": {func(m *winsim.Model) { m.ISCSI.PnPDelay, m.Storage.AttachByRescan = 0, true }, 1, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m := model()
			c.change(&m)
			node, host := connected(t, m)
			begin := node.Now()
			wantDisks(t, host, "4")
			if waited := node.Now().Sub(begin); waited < c.atLeast || waited > c.atLeast+2*time.Second {
				t.Errorf("it took %v, want about %v", waited, c.atLeast)
			}
			wantCalls(t, node, "RescanAdapter", c.rescans)
		})
	}
}

func TestGetTargetDisks_GivesUp(t *testing.T) {
	m := model()
	m.ISCSI.PnPDelay = time.Hour
	node, host := connected(t, m)
	begin := node.Now()
	_, err := disks(host)
	wantKind(t, "disks", err, winerr.Unavailable, target, "LUN 0", "try again")
	if waited := node.Now().Sub(begin); waited != 30*time.Second {
		t.Errorf("it gave up after %v, want 30 s", waited)
	}
	wantCalls(t, node, "RescanAdapter", 1)

	t.Run("at the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := m
			m.RealTime = true
			_, host := connected(t, m)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			begin := time.Now()
			_, err := disks(bind(ctx, host))
			wantKind(t, "disks", err, winerr.Unavailable, "LUN 0")
			if waited := time.Since(begin); waited != 4500*time.Millisecond {
				t.Errorf("it took %v", waited)
			}
		})
	})
	t.Run("when the caller leaves", func(t *testing.T) {
		node, host := connected(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		inject(t, node, winsim.Fault{Call: "DevicesForSession", Nth: 3, Delay: time.Nanosecond, Do: func(*winsim.Node) { cancel() }})
		_, err := disks(bind(ctx, host))
		wantKind(t, "disks", err, winerr.Cancelled, target)
	})
	t.Run("without disks", func(t *testing.T) {
		m := model()
		m.ISCSI.Targets[0].LUNs = nil
		_, host := connected(t, m)
		_, err := disks(host)
		wantKind(t, "disks", err, winerr.Unavailable, target, "no disk")
	})
}

func TestGetTargetDisks_Transient(t *testing.T) {
	for _, f := range []winsim.Fault{
		{Call: "DevicesForSession", Times: 5, Error: 0xEFFF0040},
		{Call: "DevicesForSession", Times: 5, Error: 0xEFFF001F},
		{Call: "DevicesForSession", Times: 5, Error: 0xEFFF001C}, // another session takes its place
		{Call: "DevicesForSession", Times: 5, Error: 122},
		{Call: "Sessions", Times: 4, Error: 122},
		{Call: "Sessions", Times: 4, Error: 0x8007007A},
	} {
		node, host := connected(t, model())
		inject(t, node, f)
		wantDisks(t, host, "4")
	}
	node, host := connected(t, model())
	inject(t, node, fault("Sessions", 122))
	_, err := disks(host)
	wantKind(t, "a list that grows for ever", err, winerr.Internal, "122")
	wantCalls(t, node, "Sessions", 5)

	node, host = connected(t, model())
	inject(t, node, fault("DevicesForSession", winerr.AccessDenied))
	_, err = disks(host)
	wantKind(t, "a failure for good", err, winerr.Denied, target)
	wantCalls(t, node, "DevicesForSession", 1)
}

func TestGetTargetDisks_NoSession(t *testing.T) {
	node, host := newNode(t, model())
	begin := node.Now()
	_, err := disks(host)
	wantKind(t, "known", err, winerr.NotFound, target, "ObjectNotFound", "ConnectTarget")
	_, err = host.GetTargetDisks(portal(), target+"x")
	wantKind(t, "unknown", err, winerr.NotFound, target+"x", "ObjectNotFound", "10.0.0.10:3260")
	if !node.Now().Equal(begin) {
		t.Error("it waited for a session that was never requested")
	}
}

// device is a device of a session.
func device(lun uint8, kind win.DeviceType, number uint32, name string) win.SessionDevice {
	return win.SessionDevice{LUN: lun, Device: win.DeviceNumber{Type: kind, Number: number}, LegacyName: name}
}

func TestGetTargetDisks_Devices(t *testing.T) {
	const (
		controller win.DeviceType = 4
		unknown    win.DeviceType = 0xFFFFFFFF
	)
	for name, c := range map[string]struct {
		devices []win.SessionDevice
		want    []string // nil: they are waited for
	}{
		"by LUN":              {[]win.SessionDevice{device(2, 7, 5, "a"), device(0, 7, 9, "b"), device(1, 7, 10, "c")}, []string{"9", "10", "5"}},
		"the array's own":     {[]win.SessionDevice{device(0, controller, win.NoDeviceNumber, ""), device(1, 7, 5, "a")}, []string{"5"}},
		"the same disk twice": {[]win.SessionDevice{device(0, 7, 5, "a"), device(0, 7, 5, "a")}, []string{"5"}},
		"without a number":    {[]win.SessionDevice{device(0, 7, win.NoDeviceNumber, "a")}, nil},
		"without a name":      {[]win.SessionDevice{device(0, 7, 5, "")}, nil},
		"without a type":      {[]win.SessionDevice{device(0, unknown, win.NoDeviceNumber, "")}, nil},
		"one of two":          {[]win.SessionDevice{device(0, 7, 5, "a"), device(1, 7, win.NoDeviceNumber, "")}, nil},
		"no disk at all":      {[]win.SessionDevice{device(0, controller, 1, "a")}, nil},
	} {
		node, _ := connected(t, model())
		host := iscsiapi.NewOn(&odd{Node: node, devices: func() ([]win.SessionDevice, error) { return c.devices, nil }})
		got, err := disks(host)
		if c.want == nil {
			wantKind(t, name, err, winerr.Unavailable)
		} else if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// TestSession_SwappedNames: the name of a target may stand in the other field.
func TestSession_SwappedNames(t *testing.T) {
	node, _ := connected(t, model())
	host := iscsiapi.NewOn(&odd{Node: node, sessions: func(all []win.Session) []win.Session {
		for i := range all {
			all[i].TargetName = "alias"
		}
		return all
	}})
	must(t, connect(host))
	wantCalls(t, node, "Login", 0)
	wantDisks(t, host, "4")
	must(t, disconnect(host))
	wantSessions(t, node, 0)
}

// TestGetTargetDisks_TwoSessions: with several paths the disks are listed once.
func TestGetTargetDisks_TwoSessions(t *testing.T) {
	_, host := newNode(t, twoSessions())
	wantDisks(t, host, "4")
}
