// Package devices answers the requests that the driver of the rig hands over, from an
// emulated node: it is the storage drivers of Windows, on bytes.
//
// It reads what the daemon sends and writes what it reads, so it is the mirror image of
// internal/win/winlayout and internal/win/local. What the daemon puts into a buffer of
// DeviceIoControl arrives here as it is, and what is written here the daemon has to
// understand.
package devices

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/exchange"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/wmi"
)

// FirstDisk is the number of the first disk. Lower ones may be those of Wine itself.
const FirstDisk = 7

// Odd is a preset besides those of the emulator: the disks do not say in words where they
// are, volumes are not named after their partitions, and disks without a table show empty
// entries. So the daemon has to ask for SCSI addresses and to go through all volumes.
const Odd = "odd"

// Blank is a preset besides those of the emulator: BlankDisks more empty disks of 1 GiB, every eighth with
// sectors of 4096 bytes, and a card reader without a medium.
const Blank = "blank"

// BlankDisks is how many disks of Blank csi-proxy-verify may use. The first has the number FirstBlank.
const (
	BlankDisks = 8
	FirstBlank = FirstDisk + 4
)

// Presets lists the names that Model takes. Those of nodes with mounts are not among them: the
// files are Wine's own. Nor could the rig start with the disk of "broken" that never answers.
func Presets() []string {
	names := slices.DeleteFunc(winsim.Presets(), func(name string) bool { return name == "busy" || name == "broken" })
	return append(names, Odd)
}

// Model returns a model of the emulator for the rig: the disks have numbers that Wine
// leaves free.
func Model(preset string) (winsim.Model, error) {
	model, ok := winsim.Preset(preset)
	if preset == Odd {
		model, ok = winsim.Default(), true
		model.Storage.ForeignVolumeIDs, model.Storage.RawEntries = true, true
		for i := range model.Disks {
			model.Disks[i].Location = ""
			model.Disks[i].SCSI.BusNumber = "" // Wine does not know it
		}
	}
	if preset == Blank {
		model, ok = winsim.Default(), true
		model.Storage.FormatTime, model.Storage.ServiceDelay = 50*time.Millisecond, 50*time.Millisecond
		for i := range BlankDisks {
			sectors := uint32(512)
			if i%8 == 7 {
				sectors = 4096
			}
			model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, SectorSize: sectors, Serial: fmt.Sprintf("BLANK%02d", i)})
		}
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Bus: "usb", NoMedium: true})
	}
	if !ok {
		return model, fmt.Errorf("there is no preset %q", preset)
	}
	for i := range model.Disks {
		model.Disks[i].Number = FirstDisk + uint32(i)
	}
	return model, nil
}

type station interface {
	answer(ctx context.Context, r exchange.Request) ([]byte, error)
}

// Config is what a server needs.
type Config struct {
	Node *winsim.Node
	Add  func(exchange.Device) error // makes the driver add a device
	Wine MountManager
	WMI  *wmi.Server
	Log  io.Writer // gets a line per request
	// Prepare is called before a volume gets its device. It may be nil.
	Prepare func(win.VolumeID) error
}

// FilesLine is a line that the node server writes for a volume: its name, and the directory on drive C: for its
// files.
const FilesLine = "files of %s are in %s"

// Server answers for all devices of a node.
type Server struct {
	Config

	mu       sync.Mutex
	names    []string
	stations []station // by the number of the device, as names
}

// NewServer returns a server for the devices of a node.
func NewServer(config Config) *Server { return &Server{Config: config} }

// Types of devices, FILE_DEVICE_...
const (
	typeDisk    = 7
	typeUnknown = 0x22
)

// Announce adds the devices that the driver does not know yet. It is to be called again and
// again: volumes come a while after their partitions.
//
// Devices stay. Those of a volume that is gone answer that it is gone.
func (s *Server) Announce(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.announceDisks(ctx); err != nil {
		return err
	}
	if err := s.announceVolumes(ctx); err != nil {
		return err
	}
	if err := s.announce(management{s.WMI}, typeUnknown, `\Device\WinsimWMI`, `\DosDevices\WinsimWMI`); err != nil {
		return err
	}
	return s.announce(mountManager{s.Node, s.Wine}, typeUnknown, `\Device\WinsimMountManager`, `\DosDevices\MountPointManager`)
}

func (s *Server) announceVolumes(ctx context.Context) error {
	ids, err := s.Node.VolumeIDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		name := NameOf(id)
		if s.Prepare != nil && !slices.Contains(s.names, `\Device\Winsim`+name) {
			if err := s.Prepare(id); err != nil {
				return err
			}
		}
		if err := s.announce(volume{s.Node, id}, typeDisk, `\Device\Winsim`+name, `\DosDevices\`+name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) announceDisks(ctx context.Context) error {
	disks, err := s.Node.DiskDevices(ctx)
	if err != nil {
		return err
	}
	for _, device := range disks {
		number, err := s.Node.DeviceNumber(ctx, device)
		if err != nil {
			return err
		}
		if err := s.announce(disk{s.Node, device}, typeDisk,
			fmt.Sprintf(`\Device\Harddisk%d\DR%[1]d`, number.Number),
			fmt.Sprintf(`\DosDevices\PhysicalDrive%d`, number.Number),
			`\DosDevices\`+strings.TrimPrefix(string(device), `\\?\`)); err != nil {
			return err
		}
	}
	return nil
}

// announce adds a device unless it is known. s.mu is held.
func (s *Server) announce(station station, deviceType uint32, name string, links ...string) error {
	if slices.Contains(s.names, name) {
		return nil
	}
	device := exchange.Device{Number: uint32(len(s.stations)), Type: deviceType, Name: name, Links: links}
	// The first request may come before the driver has said that it is done.
	s.names, s.stations = append(s.names, name), append(s.stations, station)
	return s.Add(device)
}

// Answer answers a request.
func (s *Server) Answer(ctx context.Context, r exchange.Request) exchange.Reply {
	s.mu.Lock()
	known := int(r.Device) < len(s.stations)
	var station station
	var name string
	if known {
		station, name = s.stations[r.Device], s.names[r.Device]
	}
	s.mu.Unlock()
	reply := exchange.Reply{ID: r.ID, Status: statusUnsuccessful}
	if known {
		data, err := station.answer(ctx, r)
		reply.Status = statusOf(err)
		reply.Data = data[:min(len(data), r.Room)]
	}
	fmt.Fprintf(s.Log, "%s: function %#x, code %#x at %d, %d bytes in, room for %d: status %#x, %d bytes\n",
		name, r.Function, r.Code, r.Offset, len(r.Data), r.Room, reply.Status, len(reply.Data))
	return reply
}

// management answers for WMI, which is not a device on Windows.
type management struct{ server *wmi.Server }

func (m management) answer(ctx context.Context, r exchange.Request) ([]byte, error) {
	if r.Function != exchange.Control || r.Code != wmi.Code {
		return nil, winerr.InvalidFunction
	}
	return m.server.Answer(ctx, r.Data)
}

// diskClass is GUID_DEVINTERFACE_DISK.
const diskClass = "{53f56307-b6bf-11d0-94f2-00a0c91efb8b}"

// locatorClass is the CLSID of WbemScripting.SWbemLocator.
const locatorClass = "{76A64158-CB41-11D1-8B02-00600806D9B6}"

// Registry returns what the registry has to say of disks and of the COM server, in the form
// that regedit imports. SetupDiGetClassDevs lists the disks that stand there.
func Registry(disks []win.Device, comServer string) string {
	var b strings.Builder
	b.WriteString("Windows Registry Editor Version 5.00\r\n")
	key := func(name string, values ...string) {
		fmt.Fprintf(&b, "\r\n[HKEY_LOCAL_MACHINE\\%s]\r\n", name)
		for _, value := range values {
			b.WriteString(value + "\r\n")
		}
	}
	quote := func(text string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"` }
	key(`Software\Classes\CLSID\`+locatorClass+`\InprocServer32`, `@=`+quote(comServer), `"ThreadingModel"="Both"`)
	const system = `SYSTEM\CurrentControlSet\`
	for _, disk := range disks {
		path := strings.TrimPrefix(string(disk), `\\?\`)
		instance := strings.ToUpper(strings.ReplaceAll(strings.TrimSuffix(path, "#"+diskClass), "#", `\`))
		class := system + `Control\DeviceClasses\` + diskClass + `\##?#` + path
		key(system+`Enum\`+instance, `"ClassGUID"="{4d36e967-e325-11ce-bfc1-08002be10318}"`, `"Class"="DiskDrive"`, `"DeviceDesc"="Disk of an emulated node"`)
		key(class, `"DeviceInstance"=`+quote(instance))
		key(class+`\#`, `"SymbolicLink"=`+quote(string(disk)))
		key(class+`\#\Control`, `"Linked"=dword:00000001`)
	}
	return b.String()
}
