package machine

import (
	"context"
	"fmt"
	"maps"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/original/powershell"
)

// background is the context of a command: PowerShell's have no other.
func background() context.Context { return context.Background() } //nolint:forbidigo // see above

// allCommands are the commands of the tests. Each has only the parameters that they use.
func (m *machine) allCommands() powershell.Commands {
	all := powershell.Commands{}
	for _, group := range []powershell.Commands{m.machineCommands(), m.diskCommands(), m.smbCommands(), m.iscsiCommands()} {
		maps.Copy(all, group)
	}
	return all
}

// nothing does nothing: what the command prepares is always there.
func nothing(powershell.Call) ([]any, error) { return nil, nil }

func (m *machine) machineCommands() powershell.Commands {
	return powershell.Commands{
		"hostname": {Run: func(powershell.Call) ([]any, error) { return []any{hostname}, nil }},
		"mkdir": {Positional: []string{"Path"}, Run: func(c powershell.Call) ([]any, error) {
			if _, err := Stat(c.Text("Path")); err == nil {
				return nil, fmt.Errorf("%s exists", c.Text("Path"))
			}
			return nil, MkdirAll(c.Text("Path"), 0)
		}},
		"rm":    {Positional: []string{"Path"}, Run: func(c powershell.Call) ([]any, error) { return nil, Remove(c.Text("Path")) }},
		"rmdir": {Positional: []string{"Path"}, Run: func(c powershell.Call) ([]any, error) { return nil, Remove(c.Text("Path")) }},
		"get-ciminstance": {Parameters: []string{"ClassName"}, Run: func(c powershell.Call) ([]any, error) {
			if c.Text("ClassName") != "Win32_BIOS" {
				return nil, fmt.Errorf("there is no class %s here", c.Text("ClassName"))
			}
			serial, err := m.node.BIOSSerialNumber(background())
			return []any{powershell.Object{"SerialNumber": serial}}, err
		}},
		"get-netipaddress": {Run: func(powershell.Call) ([]any, error) {
			return []any{
				powershell.Object{"InterfaceAlias": "Ethernet", "AddressFamily": "IPv6", "IPAddress": "fe80::1"},
				powershell.Object{"InterfaceAlias": "Ethernet", "AddressFamily": "IPv4", "IPAddress": address},
				powershell.Object{"InterfaceAlias": "Loopback", "AddressFamily": "IPv4", "IPAddress": "127.0.0.1"},
			}, nil
		}},
		"convertto-securestring": {Parameters: []string{"AsPlainText", "Force"}, Positional: []string{"String"}, Run: func(c powershell.Call) ([]any, error) {
			return []any{c.Text("String")}, nil
		}},
		"new-object": {Parameters: []string{"TypeName", "ArgumentList"}, Run: func(c powershell.Call) ([]any, error) {
			arguments, ok := c.Value("ArgumentList").([]any)
			if !ok || len(arguments) != 2 || c.Text("TypeName") != "System.Management.Automation.PSCredential" {
				return nil, fmt.Errorf("cannot make a %s here", c.Text("TypeName"))
			}
			return []any{powershell.Object{"UserName": arguments[0], "Password": arguments[1]}}, nil
		}},
		"install-windowsfeature": {Positional: []string{"Name"}, Run: nothing},
		"set-itemproperty":       {Parameters: []string{"Path", "Name", "Value"}, Run: nothing},
		"restart-service":        {Positional: []string{"Name"}, Run: nothing},
		"get-service":            {Positional: []string{"Name"}, Run: m.getService},
		"stop-service":           {Positional: []string{"Name"}, Run: m.stopService},
	}
}

// The numbers of System.ServiceProcess.ServiceControllerStatus and ServiceStartMode.
var (
	serviceStates = map[winsim.ServiceState]powershell.Enum{
		winsim.ServiceStopped: {Name: "Stopped", Number: 1}, winsim.ServiceStartPending: {Name: "StartPending", Number: 2},
		winsim.ServiceStopPending: {Name: "StopPending", Number: 3}, winsim.ServiceRunning: {Name: "Running", Number: 4},
	}
	startTypes = map[winsim.StartType]powershell.Enum{
		winsim.StartBoot: {Name: "Boot", Number: 0}, winsim.StartSystem: {Name: "System", Number: 1},
		winsim.StartAutomatic: {Name: "Automatic", Number: 2}, winsim.StartManual: {Name: "Manual", Number: 3},
		winsim.StartDisabled: {Name: "Disabled", Number: 4},
	}
)

func (m *machine) getService(c powershell.Call) ([]any, error) {
	info, err := m.node.ServiceInfo(c.Text("Name"))
	if err != nil {
		return nil, err
	}
	return []any{powershell.Object{
		"Name": info.Name, "DisplayName": info.DisplayName,
		"Status": serviceStates[info.State], "StartType": startTypes[info.StartType],
	}}, nil
}

// stopService stops the named service, or those from the pipeline.
func (m *machine) stopService(c powershell.Call) ([]any, error) {
	names := properties(c.Input, "Name")
	if c.Has("Name") {
		names = append(names, c.Text("Name"))
	}
	for _, name := range names {
		if err := m.node.SetServiceState(name, winsim.ServiceStopped); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// properties are the texts of a property of all objects.
func properties(objects []any, name string) []string {
	var texts []string
	for _, object := range objects {
		if o, ok := object.(powershell.Object); ok {
			texts = append(texts, powershell.Text(o.Get(name)))
		}
	}
	return texts
}

func (m *machine) smbCommands() powershell.Commands {
	return powershell.Commands{
		"new-localuser": {Parameters: []string{"Name", "AccountNeverExpires", "Password"}, Run: func(c powershell.Call) ([]any, error) {
			return nil, m.changeServer(func(s *winsim.SMBServer) {
				s.Accounts = append(s.Accounts, winsim.SMBAccount{User: c.Text("Name"), Password: c.Text("Password")})
			})
		}},
		"remove-localuser": {Parameters: []string{"Name"}, Run: func(c powershell.Call) ([]any, error) {
			return nil, m.changeServer(func(s *winsim.SMBServer) {
				s.Accounts = without(s.Accounts, func(a winsim.SMBAccount) bool { return a.User == c.Text("Name") })
			})
		}},
		// The files of the node's shares are not those of its drives, so that -Path only has to exist.
		"new-smbshare": {Parameters: []string{"Name", "Path", "FullAccess"}, Run: func(c powershell.Call) ([]any, error) {
			if info, err := os.Stat(m.realPath(c.Text("Path"))); err != nil || !info.IsDir() {
				return nil, fmt.Errorf("%s is not a directory", c.Text("Path"))
			}
			return nil, m.changeServer(func(s *winsim.SMBServer) {
				s.Shares = append(s.Shares, winsim.SMBShare{Name: c.Text("Name")})
			})
		}},
		"remove-smbshare": {Parameters: []string{"Name", "Force"}, Run: func(c powershell.Call) ([]any, error) {
			return nil, m.changeServer(func(s *winsim.SMBServer) {
				s.Shares = without(s.Shares, func(s winsim.SMBShare) bool { return s.Name == c.Text("Name") })
			})
		}},
		"get-smbglobalmapping": {Parameters: []string{"RemotePath"}, Run: func(c powershell.Call) ([]any, error) {
			mapping, err := m.node.SMBMapping(background(), c.Text("RemotePath"))
			if err != nil {
				return nil, err
			}
			status := powershell.Enum{Name: "Unavailable", Number: int(mapping.Status)}
			if mapping.Status == win.SMBOK {
				status.Name = "OK"
			}
			return []any{powershell.Object{"RemotePath": mapping.Remote, "Status": status}}, nil
		}},
	}
}

func (m *machine) changeServer(change func(*winsim.SMBServer)) error {
	return m.node.ChangeSMBServer(hostname, change)
}

func without[T any](items []T, gone func(T) bool) []T {
	var left []T
	for _, item := range items {
		if !gone(item) {
			left = append(left, item)
		}
	}
	return left
}
