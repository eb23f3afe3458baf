package lostvolume

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// InitiatorService is the iSCSI initiator.
const InitiatorService = "MSiSCSI"

// SessionsNotReady says which iSCSI session could still bring a disk, besides those that are listed. Windows repeats
// persistent logins after each start, for as long as it takes.
func SessionsNotReady(ctx context.Context, m win.Machine, listed map[uint32]bool) string {
	logins, err := m.PersistentLogins(ctx)
	if err != nil {
		return serviceNotReady(ctx, m, err)
	}
	sessions, err := m.Sessions(ctx)
	if err != nil {
		return "iSCSI sessions: " + reason(err)
	}
	for _, login := range logins {
		if !anySession(sessions, login.Target) {
			return "Windows has not logged in to the iSCSI target " + login.Target + " yet"
		}
	}
	for _, session := range sessions {
		if text := sessionNotReady(ctx, m, session, listed); text != "" {
			return text
		}
	}
	return ""
}

// serviceNotReady is SessionsNotReady if the initiator does not answer. It need not run where only
// drivers start it.
func serviceNotReady(ctx context.Context, m win.Machine, silent error) string {
	silence := "the iSCSI initiator does not answer: " + reason(silent)
	status, err := m.ServiceStatus(ctx, InitiatorService)
	switch {
	case winerr.CodeOf(err) == winerr.ServiceDoesNotExist:
		return ""
	case err != nil || status.State != win.ServiceStopped:
		return silence
	}
	if config, err := m.ServiceConfig(ctx, InitiatorService); err != nil || config.StartType <= win.StartAutomatic {
		return silence
	}
	return ""
}

func anySession(sessions []win.Session, target string) bool {
	for _, session := range sessions {
		if session.IsOf(target) {
			return true
		}
	}
	return false
}

// sessionNotReady says why a session could still bring a disk.
func sessionNotReady(ctx context.Context, m win.Machine, session win.Session, listed map[uint32]bool) string {
	name := "the iSCSI session with " + session.TargetName
	devices, err := m.DevicesForSession(ctx, session.ID)
	switch {
	case err != nil:
		return name + ": " + reason(err)
	case session.Connections == 0:
		return name + " is not connected"
	case len(devices) == 0:
		return name + " has no disk yet"
	}
	for _, device := range devices {
		if device.Device.Type == win.DeviceTypeDisk && !listed[device.Device.Number] {
			return name + " has a disk that Windows does not list yet"
		}
	}
	return ""
}
