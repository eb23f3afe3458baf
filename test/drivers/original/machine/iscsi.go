package machine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/original/powershell"
)

// target is a target of the iSCSI server on this machine.
type target struct {
	name string
	winsim.ISCSITarget
	offered bool
}

// offerTargets gives the targets to the node when it asks the server for them. A script makes a
// target and the next one its credentials, but a target of the node does not change.
func (m *machine) offerTargets() error {
	offer := func(node *winsim.Node) {
		for _, t := range m.targets {
			if !t.offered {
				t.offered = node.AddISCSITarget(t.ISCSITarget) == nil
			}
		}
	}
	for _, call := range []string{"AddSendTargetPortal", "RefreshSendTargetPortal"} {
		if _, err := m.node.Inject(winsim.Fault{Call: call, Do: offer}); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) iscsiCommands() powershell.Commands {
	return powershell.Commands{
		"new-iscsivirtualdisk":              {Parameters: []string{"Path", "Size", "ComputerName"}, Run: m.newISCSIDisk},
		"new-iscsiservertarget":             {Parameters: []string{"TargetName", "InitiatorIds", "ComputerName"}, Run: m.newTarget},
		"add-iscsivirtualdisktargetmapping": {Parameters: []string{"TargetName", "DevicePath", "ComputerName"}, Run: m.mapDisk},
		"set-iscsiservertarget":             {Parameters: []string{"TargetName", "EnableChap", "Chap", "EnableReverseChap", "ReverseChap", "ComputerName"}, Run: m.setTarget},
		"get-iscsiservertarget":             {Parameters: []string{"ComputerName"}, Run: nothing},
		"remove-iscsiservertarget":          {Run: func(powershell.Call) ([]any, error) { m.targets = nil; return nil, nil }},
		"get-iscsivirtualdisk":              {Parameters: []string{"ComputerName"}, Run: nothing},
		"remove-iscsivirtualdisk":           {Run: m.removeISCSIDisks},
		"get-iscsitarget":                   {Run: m.getSessions},
		"disconnect-iscsitarget":            {Parameters: []string{"Confirm"}, Run: m.disconnect},
		"get-iscsitargetportal":             {Run: nothing},
		"remove-iscsitargetportal":          {Parameters: []string{"Confirm"}, Run: m.removePortals},
	}
}

func (m *machine) newISCSIDisk(c powershell.Call) ([]any, error) {
	size, err := c.Int("Size")
	m.virtualDisks[c.Text("Path")] = &virtualDisk{size: winsim.Size(size)}
	return nil, err
}

func (m *machine) newTarget(c powershell.Call) ([]any, error) {
	name := c.Text("TargetName")
	t := &target{name: name, ISCSITarget: winsim.ISCSITarget{IQN: strings.ToLower("iqn.1991-05.com.microsoft:" + hostname + "-" + name + "-target")}}
	m.targets = append(m.targets, t)
	return []any{powershell.Object{"TargetName": name, "TargetIqn": t.IQN}}, nil
}

// target finds the target that a script sets up. The node has it as soon as it has asked for it.
func (m *machine) target(c powershell.Call) (*target, error) {
	for _, t := range m.targets {
		if t.name == c.Text("TargetName") && !t.offered {
			return t, nil
		}
	}
	return nil, fmt.Errorf("there is no target %s, or Windows knows it already", c.Text("TargetName"))
}

func (m *machine) mapDisk(c powershell.Call) ([]any, error) {
	t, err := m.target(c)
	if err != nil {
		return nil, err
	}
	d := m.virtualDisks[c.Text("DevicePath")]
	if d == nil {
		return nil, fmt.Errorf("there is no disk %s", c.Text("DevicePath"))
	}
	t.LUNs = append(t.LUNs, winsim.Disk{Size: d.size, Vendor: "MSFT", Product: "Virtual HD"})
	return nil, nil
}

func (m *machine) setTarget(c powershell.Call) ([]any, error) {
	t, err := m.target(c)
	if err != nil {
		return nil, err
	}
	if t.CHAP == nil {
		t.CHAP = &winsim.CHAP{}
	}
	if chap, ok := c.Value("Chap").(powershell.Object); ok && c.Switch("EnableChap") {
		t.CHAP.User, t.CHAP.Secret = powershell.Text(chap.Get("UserName")), powershell.Text(chap.Get("Password"))
	}
	if chap, ok := c.Value("ReverseChap").(powershell.Object); ok && c.Switch("EnableReverseChap") {
		t.CHAP.MutualSecret = powershell.Text(chap.Get("Password"))
	}
	return nil, nil
}

func (m *machine) removeISCSIDisks(powershell.Call) ([]any, error) {
	for path := range m.virtualDisks {
		if strings.HasPrefix(path, "ramdisk:") {
			delete(m.virtualDisks, path)
		}
	}
	return nil, nil
}

// getSessions returns the targets with a session.
func (m *machine) getSessions(powershell.Call) ([]any, error) {
	sessions, err := m.node.Sessions(background())
	var found []any
	for _, s := range sessions {
		found = append(found, powershell.Object{"NodeAddress": s.TargetNodeName, "session": s.ID})
	}
	return found, err
}

func (m *machine) disconnect(c powershell.Call) ([]any, error) {
	for _, session := range c.Input {
		id, ok := session.(powershell.Object).Get("session").(win.SessionID)
		if !ok {
			return nil, errors.New("the input is not a target")
		}
		if err := m.node.Logout(background(), id); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (m *machine) removePortals(powershell.Call) ([]any, error) {
	portals, err := m.node.ReportSendTargetPortals(background())
	if err != nil {
		return nil, err
	}
	for _, portal := range portals {
		if err := m.node.RemoveSendTargetPortal(background(), portal); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
