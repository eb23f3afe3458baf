package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/gone"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// allSessions lists the sessions of the iSCSI initiator, and the persistent logins that have none. It
// does not start the initiator: one that does not run has no sessions.
func (l *lookup) allSessions(ctx context.Context) ([]Session, error) {
	found, err := l.m.Sessions(ctx)
	if err != nil {
		if status, failed := l.m.ServiceStatus(ctx, gone.InitiatorService); winerr.CodeOf(failed) == winerr.ServiceDoesNotExist || failed == nil && status.State == win.ServiceStopped {
			return nil, nil
		}
		return nil, err
	}
	logins, err := l.m.PersistentLogins(ctx)
	if err != nil {
		return nil, err
	}
	sessions := make([]Session, 0, len(found))
	for _, s := range found {
		sessions = append(sessions, l.session(ctx, s))
	}
	for _, login := range logins {
		if i := slices.IndexFunc(found, func(s win.Session) bool { return s.IsOf(login.Target) }); i >= 0 {
			sessions[i].Persistent = true
		} else {
			sessions = append(sessions, Session{Target: login.Target, Persistent: true})
		}
	}
	slices.SortStableFunc(sessions, func(a, b Session) int { return cmp.Compare(a.Target, b.Target) })
	return sessions, nil
}

var errArriving = errors.New("it is still arriving")

// session asks a session for its disks. A new session answers later.
func (l *lookup) session(ctx context.Context, s win.Session) Session {
	session := Session{Target: s.TargetName, Connections: s.Connections}
	limited, cancel := context.WithTimeout(ctx, l.objectTime(ctx))
	defer cancel()
	devices, err := l.m.DevicesForSession(limited, s.ID)
	var failed problems
	if !errors.Is(err, winerr.Unsupported) {
		failed.add("disks", err)
	}
	for _, device := range devices {
		switch {
		case device.Device.Number == win.NoDeviceNumber:
			failed.add(fmt.Sprintf("disk of LUN %d", device.LUN), errArriving)
		case device.Device.Type == win.DeviceTypeDisk:
			session.Disks = append(session.Disks, device.Device.Number)
		}
	}
	slices.Sort(session.Disks)
	session.Problems = failed.texts()
	return session
}
