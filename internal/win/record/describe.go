package record

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/parallel"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const (
	// describeTimeout limits a description as a whole, and askTimeout one question, what is asked about one object,
	// and all that is asked of WMI.
	describeTimeout = 30 * time.Second
	askTimeout      = 5 * time.Second
)

// Description is what a machine had when its recording began. What did not answer has the error.
type Description struct {
	Seq           uint64 // of the last call before the description
	Uptime        Answer[time.Duration]
	SANPolicy     Answer[win.SANPolicy]
	Disks         []Disk
	Adapters      []string
	Volumes       []Volume
	SystemVolumes []win.VolumeID
	Mappings      []win.SMBMapping
	Portals       []win.SendTargetPortal
	Targets       []Target
	Sessions      []Session
	Logins        []win.PersistentLogin
	Services      []Service
	BIOSSerial    Answer[string]
	Firmware      []byte `json:",omitzero"`
	// Failures are of the lists.
	Failures []ListFailure `json:",omitzero"`
	// Snapshot is the whole state of an emulated node, in its own format.
	Snapshot json.RawMessage `json:",omitzero"`
}

// Answer is a value or the error of asking for it.
type Answer[T any] struct {
	Value T        `json:",omitzero"`
	Error *Failure `json:",omitzero"`
}

// Disk is what a disk says about itself.
type Disk struct {
	Device      win.Device
	Number      Answer[win.DeviceNumber]
	Descriptor  Answer[win.DeviceDescriptor]
	Identifiers Answer[[]win.DeviceIdentifier]
	Location    Answer[string]
	Address     Answer[win.SCSIAddress]
	Geometry    Answer[win.DiskGeometry]
	Attributes  Answer[win.DiskAttributes]
	Layout      Answer[win.DriveLayout]
}

// Volume is what Windows says about a volume.
type Volume struct {
	ID         win.VolumeID
	Number     Answer[win.DeviceNumber]
	Extents    Answer[[]win.Extent]
	FileSystem Answer[win.FileSystemInfo]
	Space      Answer[win.Space]
	NTFS       Answer[win.NTFSVolumeData]
	Paths      Answer[[]string]
	RootAccess Answer[string]
}

// Target is an iSCSI target that was discovered.
type Target struct {
	Name    string
	Portals Answer[[]win.TargetPortal]
}

// Session is an iSCSI session with its devices.
type Session struct {
	win.Session
	Devices Answer[[]win.SessionDevice]
}

// Service is a service and what it does.
type Service struct {
	Name   string
	Config Answer[win.ServiceConfig]
	Status Answer[win.ServiceStatus]
}

// ListFailure is a list that the machine has not given.
type ListFailure struct {
	Method string
	Error  *Failure
}

// Snapshotter is a machine that can write down its whole state, as an emulated one can.
type Snapshotter interface {
	Snapshot() (json.RawMessage, error)
}

// Describe asks a machine about everything of which an emulated node can be built. It changes nothing,
// follows no path and asks no server. What hangs is left out after a while.
func Describe(ctx context.Context, m win.Machine, services []string) Description {
	ctx, cancel := context.WithTimeout(win.AsInspector(ctx), describeTimeout)
	defer cancel()
	d := describer{m: m}
	d.Uptime, d.SANPolicy = ask(ctx, m.Uptime), ask(ctx, m.SANPolicy)
	d.Firmware = list(ctx, &d, "FirmwareTable", m.FirmwareTable)
	d.Adapters = list(ctx, &d, "StorageAdapters", m.StorageAdapters)
	d.SystemVolumes = list(ctx, &d, "SystemVolumes", m.SystemVolumes)
	d.disks(ctx)
	d.volumes(ctx)
	d.initiator(ctx)
	d.Services = each(ctx, services, func(ctx context.Context, name string) Service {
		return Service{name, askAbout(ctx, m.ServiceConfig, name), askAbout(ctx, m.ServiceStatus, name)}
	})
	d.management(ctx)
	// At last, because asking changes some nodes: one shows a disk as raw for some time.
	if s, ok := m.(Snapshotter); ok {
		d.Snapshot, _ = s.Snapshot() // without one there is the rest
	}
	return d.Description
}

// describer makes a description.
type describer struct {
	Description

	m win.Machine
}

func (d *describer) disks(ctx context.Context) {
	devices := list(ctx, d, "DiskDevices", d.m.DiskDevices)
	d.Disks = each(ctx, devices, func(ctx context.Context, device win.Device) Disk {
		return Disk{
			Device:      device,
			Number:      askAbout(ctx, d.m.DeviceNumber, device),
			Descriptor:  askAbout(ctx, d.m.DeviceDescriptor, device),
			Identifiers: askAbout(ctx, d.m.DeviceIdentifiers, device),
			Location:    askAbout(ctx, d.m.DeviceLocation, device),
			Address:     askAbout(ctx, d.m.SCSIAddress, device),
			Geometry:    askAbout(ctx, d.m.DiskGeometry, device),
			Attributes:  askAbout(ctx, d.m.DiskAttributes, device),
			Layout:      askAbout(ctx, d.m.DriveLayout, device),
		}
	})
}

func (d *describer) volumes(ctx context.Context) {
	ids := list(ctx, d, "VolumeIDs", d.m.VolumeIDs)
	d.Volumes = each(ctx, ids, func(ctx context.Context, id win.VolumeID) Volume {
		return Volume{
			ID:         id,
			Number:     askAbout(ctx, d.m.DeviceNumber, id.Device()),
			Extents:    askAbout(ctx, d.m.VolumeExtents, id),
			FileSystem: askAbout(ctx, d.m.FileSystem, id),
			Space:      askAbout(ctx, d.m.VolumeSpace, id),
			NTFS:       askAbout(ctx, d.m.NTFSVolumeData, id),
			Paths:      askAbout(ctx, d.m.VolumePaths, id),
			RootAccess: askAbout(ctx, d.m.RootSecurity, id),
		}
	})
}

func (d *describer) initiator(ctx context.Context) {
	d.Portals = list(ctx, d, "ReportSendTargetPortals", d.m.ReportSendTargetPortals)
	if len(d.Failures) > 0 && d.Failures[len(d.Failures)-1].Method == "ReportSendTargetPortals" {
		return // the service does not run, and the other lists would say the same
	}
	d.Logins = list(ctx, d, "PersistentLogins", d.m.PersistentLogins)
	d.Targets = each(ctx, list(ctx, d, "ReportTargets", d.m.ReportTargets), func(ctx context.Context, name string) Target {
		return Target{name, askAbout(ctx, d.m.ReportTargetPortals, name)}
	})
	d.Sessions = each(ctx, list(ctx, d, "Sessions", d.m.Sessions), func(ctx context.Context, s win.Session) Session {
		return Session{s, askAbout(ctx, d.m.DevicesForSession, s.ID)}
	})
}

// management asks what only WMI knows, after everything else: a WMI that hangs must not cost the rest. It hangs as
// a whole, so that all its questions together have the time of one.
func (d *describer) management(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	d.Mappings = list(ctx, d, "SMBMappings", d.m.SMBMappings)
	d.BIOSSerial = ask(ctx, d.m.BIOSSerialNumber)
}

func ask[T any](ctx context.Context, question func(context.Context) (T, error)) Answer[T] {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	value, err := question(ctx)
	if err != nil {
		return Answer[T]{Error: failureOf(err)}
	}
	return Answer[T]{Value: value}
}

func askAbout[T, O any](ctx context.Context, question func(context.Context, O) (T, error), object O) Answer[T] {
	return ask(ctx, func(ctx context.Context) (T, error) { return question(ctx, object) })
}

// list asks for a list, and keeps its order.
func list[T any](ctx context.Context, d *describer, method string, question func(context.Context) ([]T, error)) []T {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	items, err := question(ctx)
	if err != nil {
		d.Failures = append(d.Failures, ListFailure{method, failureOf(err)})
		return nil
	}
	return slices.Clone(items)
}

// each asks about all objects, several at a time.
func each[O, T any](ctx context.Context, objects []O, about func(context.Context, O) T) []T {
	made := make([]T, len(objects))
	parallel.Each(ctx, len(objects), askTimeout, func(ctx context.Context, i int) error {
		made[i] = about(ctx, objects[i])
		return nil
	})
	return made
}
