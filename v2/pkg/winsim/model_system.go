package winsim

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout/smbios"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Firmware is what the firmware reports about the machine.
type Firmware struct {
	// Manufacturer and Product are fields of the SMBIOS table, in Latin-1.
	Manufacturer string `yaml:"manufacturer"`
	Product      string `yaml:"product"`
	Serial       string `yaml:"serial"`    // the serial number, including trailing spaces; may be empty
	Table        string `yaml:"table"`     // replaces the fields above by a whole table in hexadecimal digits. It may be malformed.
	WMISerial    string `yaml:"wmiSerial"` // the serial number of Win32_BIOS; the default is the one in the table
}

func (f Firmware) build() (*firmware, *ModelError) {
	built := &firmware{wmiSerial: f.WMISerial}
	for _, part := range []struct{ field, text string }{
		{"manufacturer", f.Manufacturer}, {"product", f.Product}, {"serial", f.Serial},
	} {
		switch {
		case part.text != "" && f.Table != "":
			return nil, problem("table", "set either table or %s", part.field)
		case strings.ContainsFunc(part.text, func(r rune) bool { return r == 0 || r > 0xFF }):
			return nil, problem(part.field, "%.100q has characters that firmware cannot show", part.text)
		}
	}
	if f.Table != "" {
		table, err := hex.DecodeString(strings.ReplaceAll(f.Table, " ", ""))
		if err != nil {
			return nil, problem("table", "%.40q is not a string of hexadecimal bytes", f.Table)
		}
		built.table = table
	} else {
		built.table = smbios.Encode(smbios.System{Manufacturer: f.Manufacturer, Product: f.Product, Serial: f.Serial})
	}
	if built.wmiSerial == "" {
		built.wmiSerial = smbios.SerialNumber(built.table)
	}
	return built, nil
}

// Service is a service of the node.
type Service struct {
	Name        string       `yaml:"name"`        // the short name, unique ignoring case
	DisplayName string       `yaml:"displayName"` // the display name; the default is Name
	StartType   StartType    `yaml:"startType"`   // the start type; the default is StartManual
	State       ServiceState `yaml:"state"`       // the initial state. By default, automatic services and their dependencies run, and others are stopped.
	DependsOn   []string     `yaml:"dependsOn"`   // the names of services that must run before this one

	// StartTime and StopTime are how long the service is pending, and its wait hint.
	StartTime time.Duration `yaml:"startTime"`
	StopTime  time.Duration `yaml:"stopTime"`
	// ExitCode makes the service fail to start with this Windows code, and with 1066 with SpecificExitCode, its own.
	ExitCode         uint32 `yaml:"exitCode"`
	SpecificExitCode uint32 `yaml:"specificExitCode"`
	StartCode        uint32 `yaml:"startCode"`   // makes StartService itself fail with this Windows code
	RefusesStop      bool   `yaml:"refusesStop"` // makes the service refuse to stop, with ERROR_INVALID_SERVICE_CONTROL (1052)
	Proxy            bool   `yaml:"proxy"`       // marks the service that runs CSI Proxy itself, under any name. It must not stop itself.

	LastExit uint32 `yaml:"lastExit"` // in a description, the code of the last stop
}

// StartType is when Windows starts a service: one of these, or boot and system for drivers.
type StartType string

const (
	startBoot      StartType = "boot"
	startSystem    StartType = "system"
	StartAutomatic StartType = "automatic"
	StartManual    StartType = "manual"
	StartDisabled  StartType = "disabled"
)

var startTypes = map[StartType]win.StartType{
	startBoot:      win.StartBoot,
	startSystem:    win.StartSystem,
	StartAutomatic: win.StartAutomatic,
	StartManual:    win.StartManual,
	StartDisabled:  win.StartDisabled,
}

// byItself reports whether Windows starts such services automatically.
func (t StartType) byItself() bool {
	return t == startBoot || t == startSystem || t == StartAutomatic
}

// ServiceState is the state of a service: one of these, continue-pending or pause-pending.
type ServiceState string

const (
	ServiceStopped         ServiceState = "stopped"
	ServiceStartPending    ServiceState = "start-pending"
	ServiceStopPending     ServiceState = "stop-pending"
	ServiceRunning         ServiceState = "running"
	serviceContinuePending ServiceState = "continue-pending"
	servicePausePending    ServiceState = "pause-pending"
	ServicePaused          ServiceState = "paused"
)

var serviceStates = map[ServiceState]win.ServiceState{
	ServiceStopped:         win.ServiceStopped,
	ServiceStartPending:    win.ServiceStartPending,
	ServiceStopPending:     win.ServiceStopPending,
	ServiceRunning:         win.ServiceRunning,
	serviceContinuePending: win.ServiceContinuePending,
	servicePausePending:    win.ServicePausePending,
	ServicePaused:          win.ServicePaused,
}

func (s ServiceState) check(field string) *ModelError {
	return oneOf(field, s, ServiceStopped, ServiceStartPending, ServiceStopPending, ServiceRunning,
		serviceContinuePending, servicePausePending, ServicePaused)
}

func (s Service) build() (*service, *ModelError) {
	if flaw := servicelist.Check(s.Name); flaw != "" {
		return nil, problem("name", "%.100q is not the name of a service: %s", s.Name, flaw)
	}
	for _, err := range []*ModelError{
		oneOf("startType", s.StartType, startBoot, startSystem, StartAutomatic, StartManual, StartDisabled),
		s.State.check("state"),
	} {
		if err != nil {
			return nil, err
		}
	}
	if s.SpecificExitCode != 0 && s.ExitCode != 1066 {
		return nil, problem("specificExitCode", "needs exitCode 1066")
	}
	s.DisplayName, s.StartType = cmp.Or(s.DisplayName, s.Name), cmp.Or(s.StartType, StartManual)
	return &service{Service: s}, nil
}

// buildServices returns the services in their initial state.
func buildServices(c *clock, models []Service) (*services, *ModelError) {
	built := &services{clock: c, byName: map[string]*service{}}
	for i, model := range models {
		s, err := model.build()
		if err == nil {
			err = built.register(s)
		}
		if err != nil {
			return nil, err.at("services", i)
		}
	}
	for i, s := range built.all {
		if err := built.resolve(s); err != nil {
			return nil, err.at("services", i)
		}
	}
	for i, s := range built.all {
		if s.needsItself() {
			return nil, problem("dependsOn", "%s depends on itself", s.Name).at("services", i)
		}
	}
	built.runAtStart()
	for i, s := range built.all {
		if s.LastExit != 0 {
			return nil, problem("lastExit", "only a description has it").at("services", i)
		}
		if s.State == ServiceStopped || s.State == ServiceStartPending {
			continue
		}
		for _, needed := range s.needs {
			if needed.State == ServiceStopped {
				return nil, problem("state", "the service is %s, but its dependency %s is stopped", s.State, needed.Name).at("services", i)
			}
		}
	}
	return built, nil
}

func (m *services) register(s *service) *ModelError {
	key := winpath.Fold(s.Name)
	if m.byName[key] != nil {
		return problem("name", "%q is used twice", s.Name)
	}
	m.byName[key] = s
	m.all = append(m.all, s)
	return nil
}

func (m *services) resolve(s *service) *ModelError {
	for _, name := range s.DependsOn {
		needed := m.byName[winpath.Fold(name)]
		if needed == nil {
			return problem("dependsOn", "%q is not a service of the node", name)
		}
		s.needs = append(s.needs, needed)
	}
	return nil
}

// needsItself reports whether a service depends on itself, directly or not.
func (s *service) needsItself() bool {
	all := slices.Clone(s.needs)
	for i := 0; i < len(all); i++ {
		for _, needed := range all[i].needs {
			if !slices.Contains(all, needed) {
				all = append(all, needed)
			}
		}
	}
	return slices.Contains(all, s)
}

// runAtStart gives the services without a state their state after a start.
func (m *services) runAtStart() {
	for _, s := range m.all {
		if s.State == "" && s.StartType.byItself() {
			s.runAtStart()
		}
	}
	for _, s := range m.all {
		if s.State == "" {
			s.State = ServiceStopped
		}
	}
}

// runAtStart makes a service and its dependencies run, unless the model sets their state.
func (s *service) runAtStart() {
	s.State = ServiceRunning
	for _, needed := range s.needs {
		if needed.State == "" {
			needed.runAtStart()
		}
	}
}
