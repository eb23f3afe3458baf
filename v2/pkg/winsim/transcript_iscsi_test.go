package winsim_test

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// portalOf reads a portal as transcripts write it.
func portalOf(text string) win.TargetPortal {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return win.TargetPortal{}
	}
	return win.TargetPortal{Address: at.Addr().String(), Port: at.Port()}
}

// askInitiator runs the seam's questions to the iSCSI initiator.
func (s *shell) askInitiator(command string, argument func(int) string, _ []string) (result string, err error) {
	ctx, n := s.t.Context(), s.node
	switch command {
	case "ReportSendTargetPortals":
		var portals []win.SendTargetPortal
		portals, err = n.ReportSendTargetPortals(ctx)
		for _, p := range portals {
			result += fmt.Sprintf("%s by %s, port %d\n", p.Portal, p.InitiatorInstance, int32(p.InitiatorPort))
		}
	case "ReportTargets":
		var names []string
		names, err = n.ReportTargets(ctx)
		result = fmt.Sprint(names)
	case "ReportTargetPortals":
		var portals []win.TargetPortal
		portals, err = n.ReportTargetPortals(ctx, argument(0))
		result = fmt.Sprint(portals)
	case "Sessions":
		var sessions []win.Session
		sessions, err = n.Sessions(ctx)
		for _, session := range sessions {
			result += fmt.Sprintf("%s with %d connections\n", session.TargetName, session.Connections)
		}
	case "DevicesForSession": // the n-th
		var devices []win.SessionDevice
		devices, err = n.DevicesForSession(ctx, s.session(argument(0)))
		for _, d := range devices {
			result += strings.TrimSpace(fmt.Sprintf("LUN %d type %d number %d %s", d.LUN, d.Device.Type, int32(d.Device.Number), d.LegacyName)) + "\n"
		}
	case "PersistentLogins":
		var logins []win.PersistentLogin
		logins, err = n.PersistentLogins(ctx)
		for _, login := range logins {
			result += fmt.Sprintf("%s at %s\n", login.Target, login.Portal)
		}
	case "sessions":
		for _, session := range n.Describe().ISCSI.Sessions {
			result += fmt.Sprintf("%s at %s disks %v\n", session.Target, session.Portal, disksOf(n, session.Target))
		}
	case "logins":
		for _, login := range n.Describe().ISCSI.Logins {
			result += fmt.Sprintf("%s at %s\n", login.Target, login.Portal)
		}
	default:
		err = errUnknown
	}
	return strings.TrimSuffix(result, "\n"), err
}

// session finds a session by its number, counted from 1 in the order of Sessions.
func (s *shell) session(number string) win.SessionID {
	sessions, err := s.node.Sessions(s.t.Context())
	for i, session := range sessions {
		if err == nil && fmt.Sprint(i+1) == number {
			return session.ID
		}
	}
	return win.SessionID{AdapterUnique: 1, AdapterSpecific: 1}
}

// changeInitiator runs what changes the initiator, or the world around it.
func (s *shell) changeInitiator(command string, argument func(int) string, _ []string) (result string, err error) {
	ctx, n := s.t.Context(), s.node
	switch command {
	case "AddSendTargetPortal":
		err = n.AddSendTargetPortal(ctx, portalOf(argument(0)))
	case "RefreshSendTargetPortal":
		err = n.RefreshSendTargetPortal(ctx, portalOf(argument(0)))
	case "RemoveSendTargetPortal": // and the initiator instance
		err = n.RemoveSendTargetPortal(ctx, win.SendTargetPortal{Portal: portalOf(argument(0)), InitiatorInstance: argument(1), InitiatorPort: win.AnyInitiatorPort})
	case "Login": // target, portal, and for CHAP user and secret; "mutual" at the end
		login := win.Login{Target: argument(0), Portal: portalOf(argument(1)), User: argument(2), Secret: win.NewSecret(argument(3))}
		if argument(3) != "" {
			login.Auth = win.OneWayCHAP
		}
		if argument(4) == "mutual" {
			login.Auth = win.MutualCHAP
		}
		_, err = n.Login(ctx, login)
	case "Logout":
		err = n.Logout(ctx, s.session(argument(0)))
	case "RemovePersistentTarget":
		err = n.RemovePersistentTarget(ctx, win.PersistentLogin{Target: argument(0), InitiatorInstance: `ROOT\ISCSIPRT\0000_0`, InitiatorPort: win.AnyInitiatorPort, Portal: portalOf(argument(1))})
	case "SetInitiatorCHAPSharedSecret":
		err = n.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret(argument(0)))
	case "down":
		err = n.SetISCSIPortalDown(argument(0), true)
	case "up":
		err = n.SetISCSIPortalDown(argument(0), false)
	case "open": // the disks of a target
		s.held[argument(0)], err = n.Hold(argument(0))
	default:
		err = errUnknown
	}
	return result, err
}

// disksOf are the numbers of a target's disks that have appeared.
func disksOf(n *winsim.Node, iqn string) (numbers []uint32) {
	for _, t := range n.Describe().ISCSI.Targets {
		for _, lun := range t.LUNs {
			if t.IQN == iqn && lun.Presence == winsim.DiskAttached {
				numbers = append(numbers, lun.Number)
			}
		}
	}
	return numbers
}
