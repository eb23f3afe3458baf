package winsim

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// FromDescription returns a node like the machine that a recording describes. Adjust changes its model
// first; it may be nil. What the emulator cannot be is left out, and notes say so. Only package replay of
// this module can use it.
func FromDescription(d record.Description, adjust func(*Model)) (n *Node, notes []string, err error) {
	s := described{Description: d}
	model := Model{Firmware: Firmware{Table: hex.EncodeToString(d.Firmware), WMISerial: d.BIOSSerial.Value}}
	model.Storage.SANPolicy = sanPolicies[d.SANPolicy.Value]
	model.ISCSI = s.initiator()
	model.Disks, model.Volumes, model.Files = s.disks(), s.otherVolumes(), s.mountedFolders()
	model.SMBServers = s.servers()
	model.Services = s.services()
	if adjust != nil {
		adjust(&model)
	}
	n, notes, err = salvage(model)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range d.Volumes {
		made := n.volumes[normalGUID(string(v.ID))]
		if made != nil && made.fileSystem() != nil {
			made.fileSystem().label = v.FileSystem.Value.Label
			made.fileSystem().rootAccess = v.RootAccess.Value
		}
	}
	n.booted = n.clock.now().Add(-d.Uptime.Value)
	return n, append(s.notes, notes...), nil
}

// salvage creates a node of a model, without the parts that are wrong.
func salvage(model Model) (n *Node, notes []string, err error) {
	for range 1000 { // each time something is left out
		n, err = New(model)
		wrong := (*ModelError)(nil)
		if !errors.As(err, &wrong) {
			return n, notes, err
		}
		notes = append(notes, "the emulated node is different: "+wrong.Error())
		part, index := brokenPart(wrong.Field)
		switch {
		case part == "disks" && len(model.Disks[index].Partitions) > 0:
			model.Disks[index].Layout, model.Disks[index].ID, model.Disks[index].Partitions = LayoutRaw, "", nil
		case part == "disks":
			model.Disks = slices.Delete(model.Disks, index, index+1)
		case part == "volumes":
			model.Volumes = slices.Delete(model.Volumes, index, index+1)
		case part == "files":
			model.Files = slices.Delete(model.Files, index, index+1)
		case part == "smbServers":
			model.SMBServers = slices.Delete(model.SMBServers, index, index+1)
		case part == "services":
			model.Services = slices.Delete(model.Services, index, index+1)
		case strings.HasPrefix(wrong.Field, "iscsi"):
			model.ISCSI = ISCSI{}
		case strings.HasPrefix(wrong.Field, "firmware"):
			model.Firmware = Firmware{}
		default:
			return nil, nil, err
		}
	}
	return nil, nil, err
}

var indexed = regexp.MustCompile(`^(\w+)\[(\d+)\]`)

// brokenPart returns the list and the index at the beginning of a field such as disks[2].size.
func brokenPart(field string) (list string, index int) {
	match := indexed.FindStringSubmatch(field)
	if match == nil {
		return "", 0
	}
	index, _ = strconv.Atoi(match[2])
	return match[1], index
}

// described makes the parts of a model from a description.
type described struct {
	record.Description

	notes []string
	luns  map[uint32]bool // the disks of iSCSI targets
}

var sanPolicies = map[win.SANPolicy]SANPolicy{
	win.SANOfflineShared: OfflineShared, win.SANOfflineAll: OfflineAll, win.SANOfflineInternal: OfflineAll, win.SANOnlineAll: OnlineAll,
}

// disks are the disks except those of iSCSI targets.
func (s *described) disks() (disks []Disk) {
	for _, d := range s.Disks {
		if number := d.Number.Value; d.Number.Error == nil && !s.luns[number.Number] {
			made := s.disk(d)
			made.Number = number.Number
			disks = append(disks, made)
		}
	}
	slices.SortFunc(disks, func(a, b Disk) int { return cmp.Compare(a.Number, b.Number) })
	return disks
}

func (s *described) disk(d record.Disk) Disk {
	made := Disk{
		Path: string(d.Device), Size: Size(d.Geometry.Value.Size) &^ 4095, SectorSize: d.Geometry.Value.BytesPerSector,
		Bus: keyOf(busTypes, d.Descriptor.Value.BusType), Vendor: d.Descriptor.Value.Vendor, Product: d.Descriptor.Value.Product, Serial: d.Descriptor.Value.Serial,
		Location: d.Location.Value, Offline: d.Attributes.Value.Offline, ReadOnly: d.Attributes.Value.ReadOnly,
	}
	made.Online = d.Attributes.Error == nil && !made.Offline && !made.ReadOnly
	if d.Geometry.Error != nil {
		made.Size, made.Dying, made.Online = GiB, true, false
		return made
	}
	for _, id := range d.Identifiers.Value {
		made.Page83 = append(made.Page83, Identifier{
			CodeSet: keyOf(codeSets, id.CodeSet), Type: keyOf(identifierTypes, id.Type), Association: id.Association, Hex: hex.EncodeToString(id.Value),
		})
	}
	if a := d.Address.Value; d.Address.Error == nil {
		made.SCSI = &SCSI{Port: a.Port, Path: a.Path, Target: a.Target, LUN: a.LUN, BusNumber: a.BusNumber}
	}
	layout := d.Layout.Value
	switch {
	case d.Layout.Error != nil:
	case layout.Style == win.StyleGPT:
		made.Layout, made.ID = LayoutGPT, layout.DiskID.String()
	case layout.Style == win.StyleMBR && len(layout.Partitions) == 1 && layout.Partitions[0].Offset == 0:
		made.Layout = LayoutSuperfloppy
	case layout.Style == win.StyleMBR:
		made.Layout, made.ID = LayoutMBR, fmt.Sprintf("%08x", layout.Signature)
	}
	partitions := slices.SortedFunc(slices.Values(layout.Partitions), func(a, b win.Partition) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, p := range partitions {
		partition := Partition{Offset: Size(p.Offset), Size: Size(p.Length), Attributes: p.Attributes, Name: p.Name}
		switch made.Layout {
		case LayoutGPT:
			partition.Type, partition.ID = p.Type.String(), p.ID.String()
		case LayoutMBR:
			partition.Type = fmt.Sprintf("0x%02x", p.MBRType)
		default: // a superfloppy has neither
			partition = Partition{}
		}
		if p.Number == 0 && made.Layout == LayoutMBR {
			continue // an unused entry
		}
		if v, ok := s.volumeAt(d.Number.Value.Number, p.Offset); ok {
			volume := s.volume(v)
			partition.Volume = &volume
			made.System = made.System || slices.Contains(s.SystemVolumes, v.ID)
		}
		made.Partitions = append(made.Partitions, partition)
	}
	return made
}

// keyOf is the key of a value in a table, or the zero value.
func keyOf[K ~string, V comparable](table map[K]V, value V) K {
	var found K
	for key, known := range table {
		if known == value && key != "" {
			found = key
		}
	}
	return found
}

// volumeAt returns the volume that is a partition.
func (s *described) volumeAt(disk uint32, offset int64) (record.Volume, bool) {
	for _, v := range s.Volumes {
		if e := v.Extents.Value; len(e) == 1 && e[0].Disk == disk && e[0].Offset == offset {
			return v, true
		}
	}
	return record.Volume{}, false
}

func (s *described) volume(v record.Volume) Volume {
	made := Volume{ID: string(v.ID)}
	for _, path := range v.Paths.Value {
		if isDriveRoot(path) {
			made.Letter = path[:1]
		}
	}
	made.FileSystem = FileSystem(strings.ToLower(v.FileSystem.Value.Name))
	if f := v.FileSystem.Error; f != nil {
		made.FileSystem = FileSystemNone
		if code := winerr.CodeOf(f.Err()); code == winerr.NotReady {
			made.State = NotReady
		} else if code == winerr.FVELocked {
			made.State, made.FileSystem = Locked, NTFS
		}
		return made
	}
	if oneOf("fileSystem", made.FileSystem, NTFS, ReFS, FAT32, CDFS) != nil {
		s.notes = append(s.notes, fmt.Sprintf("volume %s has the file system %s, which is not emulated; it is NTFS", v.ID, v.FileSystem.Value.Name))
		made.FileSystem = NTFS
	}
	length := v.Space.Value.Total
	if e := v.Extents.Value; len(e) == 1 {
		length = e[0].Length
	}
	if v.Space.Error == nil && length > 0 {
		empty := newFileSystem(made.FileSystem, length, 512)
		made.Used = Size(max(0, v.Space.Value.Total-v.Space.Value.Free-empty.used))
	}
	return made
}

// isDriveRoot recognises the root of a drive among the paths of a volume.
func isDriveRoot(path string) bool { return len(path) == len(`C:\`) && path[1] == ':' }

// otherVolumes are those that are not a single partition of a disk.
func (s *described) otherVolumes() (volumes []Volume) {
	for _, v := range s.Volumes {
		extents := v.Extents.Value
		if len(extents) == 1 && s.hasPartition(extents[0]) {
			continue
		}
		made := s.volume(v)
		for _, e := range extents {
			made.Extents = append(made.Extents, Extent{Disk: e.Disk, Offset: Size(e.Offset), Size: Size(e.Length)})
		}
		if len(extents) == 0 {
			made.Size = Size(max(v.Space.Value.Total, int64(MiB))+4095) &^ 4095
			made.CDROM = v.Number.Value.Type == win.DeviceTypeCDROM
		}
		volumes = append(volumes, made)
	}
	return volumes
}

func (s *described) hasPartition(e win.Extent) bool {
	return slices.ContainsFunc(s.Disks, func(d record.Disk) bool {
		return d.Number.Value.Number == e.Disk && slices.ContainsFunc(d.Layout.Value.Partitions, func(p win.Partition) bool { return p.Offset == e.Offset })
	})
}

// mountedFolders are the folders of which the mount manager knows, outer ones first.
func (s *described) mountedFolders() (files []File) {
	for _, v := range s.Volumes {
		for _, path := range v.Paths.Value {
			if !isDriveRoot(path) {
				files = append(files, File{Path: strings.TrimSuffix(path, `\`), Volume: string(v.ID)})
			}
		}
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Or(len(a.Path)-len(b.Path), strings.Compare(a.Path, b.Path)) })
	return files
}

// initiator are the portals, targets and sessions.
func (s *described) initiator() (in ISCSI) {
	s.luns = map[uint32]bool{}
	known := map[string]bool{}
	add := func(p win.TargetPortal, registered bool) {
		if !known[p.String()] {
			known[p.String()] = true
			in.Portals = append(in.Portals, ISCSIPortal{Address: p.Address, Port: p.Port, Registered: registered})
		}
	}
	for _, p := range s.Portals {
		add(p.Portal, true)
	}
	for _, t := range s.Targets {
		target := ISCSITarget{IQN: t.Name}
		for _, p := range t.Portals.Value {
			add(p, false)
			target.Portals = append(target.Portals, p.String())
		}
		for _, session := range s.Sessions {
			if !session.IsOf(t.Name) || len(target.LUNs) > 0 {
				continue
			}
			for _, device := range session.Devices.Value {
				for _, d := range s.Disks {
					if d.Number.Value.Number == device.Device.Number {
						lun := s.disk(d)
						lun.Bus, lun.SCSI, lun.System = "", nil, false
						target.LUNs = append(target.LUNs, lun)
						s.luns[device.Device.Number] = true
					}
				}
			}
			if len(target.Portals) > 0 {
				in.Logins = append(in.Logins, ISCSILogin{Target: t.Name, Portal: target.Portals[0]})
			}
		}
		in.Targets = append(in.Targets, target)
	}
	return in
}

// describedUser is the account of the mappings that a description lists: it does not tell their users.
const describedUser = "recorded"

// servers are those of the mappings.
func (s *described) servers() (servers []SMBServer) {
	for _, m := range s.Mappings {
		server, share, _ := splitUNC(m.Remote)
		at := slices.IndexFunc(servers, func(known SMBServer) bool { return winpath.Equal(known.Name, server) })
		if at < 0 {
			at = len(servers)
			servers = append(servers, SMBServer{Name: server, Guest: true, Accounts: []SMBAccount{{User: describedUser, Password: HiddenSecret}}})
		}
		servers[at].Shares = append(servers[at].Shares, SMBShare{Name: share, MappedFor: describedUser})
	}
	return servers
}

// services are those that the machine has.
func (s *described) services() (services []Service) {
	for _, service := range s.Services {
		if service.Config.Error != nil || service.Status.Error != nil {
			continue
		}
		services = append(services, Service{
			Name: service.Name, DisplayName: service.Config.Value.DisplayName,
			StartType: keyOf(startTypes, service.Config.Value.StartType), State: keyOf(serviceStates, service.Status.Value.State),
		})
	}
	return services
}

// AttachDescribed attaches a disk like the one that a recording describes, with its volumes. If the node has
// or had a disk with the same id, the disk has that one's content: it is the same disk, or a copy. Only
// package replay of this module can use it.
func (n *Node) AttachDescribed(d record.Disk, volumes []record.Volume) error {
	model := (&described{Description: record.Description{Volumes: volumes}}).disk(d)
	model.Number = d.Number.Value.Number
	n.lock()
	defer n.mu.Unlock()
	_, err := n.attach("attach disk", model, func(made *disk) {
		if original := n.originalOf(made); original != nil {
			made.copyFrom(original)
			return
		}
		for _, v := range volumes {
			for _, p := range made.table.partitions {
				if p.volume != nil && p.volume.guid == normalGUID(string(v.ID)) && p.volume.fileSystem() != nil {
					p.volume.fileSystem().label, p.volume.fileSystem().rootAccess = v.FileSystem.Value.Label, v.RootAccess.Value
				}
			}
		}
	})
	return err
}

// originalOf returns a disk with the id of another one, the same hardware first. n.mu is held.
func (n *Node) originalOf(d *disk) (original *disk) {
	for _, other := range n.allDisks() {
		if !other.table.sameID(d.table) || other.size > d.size || other.sector != d.sector {
			continue
		}
		if original == nil || other.descriptor.Serial == d.descriptor.Serial || original.descriptor.Serial != d.descriptor.Serial && other.number < original.number {
			original = other
		}
	}
	return original
}
