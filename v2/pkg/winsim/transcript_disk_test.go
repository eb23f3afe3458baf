package winsim_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// errUnknown is the answer to a command that is not there.
var errUnknown = errors.New("unknown command")

// storage runs the commands of disks, volumes and services.
func (s *shell) storage(command string, arguments []string) (string, error) {
	argument := func(i int) string {
		if i < len(arguments) {
			return arguments[i]
		}
		return ""
	}
	for _, run := range []func(string, func(int) string, []string) (string, error){s.askDisk, s.changeDisk, s.askVolume, s.changeVolume, s.backend, s.askInitiator, s.changeInitiator, s.services} {
		if result, err := run(command, argument, arguments); !errors.Is(err, errUnknown) {
			return result, err
		}
	}
	return "", errUnknown
}

// askDisk runs the seam's questions to disks.
func (s *shell) askDisk(command string, argument func(int) string, _ []string) (result string, err error) {
	ctx, n, device := s.t.Context(), s.node, win.Device(argument(0))
	switch command {
	case "DiskDevices", "HiddenDiskDevices":
		list := n.DiskDevices
		if command == "HiddenDiskDevices" {
			list = n.HiddenDiskDevices
		}
		var devices []win.Device
		devices, err = list(ctx)
		for _, d := range devices {
			result += string(d) + "\n"
		}
	case "DeviceNumber":
		var number win.DeviceNumber
		if number, err = n.DeviceNumber(ctx, device); err == nil {
			result = fmt.Sprintf("type %d, number %d, partition %d", number.Type, number.Number, int32(number.Partition))
		}
	case "DeviceDescriptor":
		var descriptor win.DeviceDescriptor
		if descriptor, err = n.DeviceDescriptor(ctx, device); err == nil {
			result = fmt.Sprintf("bus %d, model %q %q, serial %q", descriptor.BusType, descriptor.Vendor, descriptor.Product, descriptor.Serial)
		}
	case "DeviceIdentifiers":
		var identifiers []win.DeviceIdentifier
		identifiers, err = n.DeviceIdentifiers(ctx, device)
		for _, id := range identifiers {
			value := string(id.Value)
			if id.CodeSet == win.CodeSetBinary {
				value = fmt.Sprintf("%x", value)
			}
			result += fmt.Sprintf("code set %d, type %d, association %d, %s\n", id.CodeSet, id.Type, id.Association, value)
		}
	case "DeviceLocation":
		result, err = n.DeviceLocation(ctx, device)
	case "SCSIAddress":
		var a win.SCSIAddress
		if a, err = n.SCSIAddress(ctx, device); err == nil {
			result = fmt.Sprintf("port %d, path %d, target %d, LUN %d, bus %q", a.Port, a.Path, a.Target, a.LUN, a.BusNumber)
		}
	case "DiskGeometry":
		var geometry win.DiskGeometry
		if geometry, err = n.DiskGeometry(ctx, device); err == nil {
			result = fmt.Sprintf("%s, sectors of %d", winsim.Size(geometry.Size), geometry.BytesPerSector)
		}
	case "DiskAttributes":
		var attributes win.DiskAttributes
		if attributes, err = n.DiskAttributes(ctx, device); err == nil {
			result = fmt.Sprintf("offline %v, read-only %v", attributes.Offline, attributes.ReadOnly)
		}
	case "DriveLayout":
		var layout win.DriveLayout
		if layout, err = n.DriveLayout(ctx, device); err == nil {
			result = showLayout(layout)
		}
	case "ReadDevice":
		offset, length := size(argument(1)), size(argument(2))
		var b []byte
		if b, err = n.ReadDevice(ctx, device, offset, int(length)); err == nil {
			result = showBytes(b)
		}
	case "StorageAdapters":
		var ids []string
		ids, err = n.StorageAdapters(ctx)
		result = strings.Join(ids, "\n")
	case "RescanAdapter":
		err = n.RescanAdapter(ctx, argument(0))
	default:
		err = errUnknown
	}
	return result, err
}

func showLayout(layout win.DriveLayout) string {
	text := layout.Style.String()
	switch layout.Style {
	case win.StyleGPT:
		text += fmt.Sprintf(" usable %d+%d of %d", layout.UsableOffset, layout.UsableLength, layout.MaxPartitions)
	case win.StyleMBR:
		text += fmt.Sprintf(" %#x", layout.Signature)
	case win.StyleRaw:
	}
	types := map[win.GUID]string{win.PartitionBasicData: "basic", win.PartitionMSR: "msr", win.PartitionEFI: "efi"}
	for _, p := range layout.Partitions {
		kind, ok := types[p.Type]
		switch {
		case layout.Style == win.StyleMBR:
			kind = fmt.Sprintf("%#02x", p.MBRType)
		case !ok:
			kind = p.Type.String()
		}
		text += fmt.Sprintf("\n%d: %d+%d %s", p.Number, p.Offset, p.Length, kind)
	}
	return text
}

// showBytes shows where something is.
func showBytes(b []byte) string {
	text := ""
	for at := 0; at < len(b); at++ {
		if b[at] == 0 {
			continue
		}
		end := at
		for end < len(b) && b[end] != 0 {
			end++
		}
		if text += fmt.Sprintf("%d:%q ", at, b[at:end]); len(text) > 100 {
			return text + "..."
		}
		at = end
	}
	if text == "" {
		return "zeros"
	}
	return text
}

// changeDisk runs the seam's changes of disks.
func (s *shell) changeDisk(command string, argument func(int) string, arguments []string) (result string, err error) {
	ctx, n, device := s.t.Context(), s.node, win.Device(argument(0))
	switch command {
	case "SetDiskAttributes": // such as online or read-only
		attributes, mask := win.DiskAttributes{}, win.DiskAttributes{}
		for _, word := range arguments[1:] {
			mask.Offline = mask.Offline || strings.HasSuffix(word, "line")
			mask.ReadOnly = mask.ReadOnly || !strings.HasSuffix(word, "line")
			attributes.Offline = attributes.Offline || word == "offline"
			attributes.ReadOnly = attributes.ReadOnly || word == "read-only"
		}
		err = n.SetDiskAttributes(ctx, device, attributes, mask)
	case "TakeUnusedOffline":
		err = n.TakeUnusedOffline(ctx, device, []win.VolumeID{win.VolumeID(argument(1))})
	case "CreateDisk":
		err = n.CreateDisk(ctx, device, win.MustGUID("cccccccc-0000-4000-8000-000000000000"))
	case "SetDriveLayout": // adds partitions such as 16MiB+1GiB:basic to those there are, or only them after "only"
		var layout win.DriveLayout
		if layout, err = n.DriveLayout(ctx, device); err != nil {
			return "", err
		}
		if err = change(&layout, arguments[1:]); err == nil {
			err = n.SetDriveLayout(ctx, device, layout)
		}
	case "GrowPartition":
		number, _ := strconv.ParseUint(argument(1), 10, 32)
		err = n.GrowPartition(ctx, device, uint32(number), size(argument(2)))
	case "UpdateDisk":
		err = n.UpdateDisk(ctx, device)
	case "UpdateDriveSize":
		err = n.UpdateDriveSize(ctx, device)
	default:
		err = errUnknown
	}
	return result, err
}

func change(layout *win.DriveLayout, words []string) error {
	for _, word := range words {
		switch word {
		case "only":
			layout.Partitions = nil
			continue
		case "as-gpt":
			layout.Style = win.StyleGPT
			continue
		}
		place, kind, _ := strings.Cut(word, ":")
		offset, length, ok := strings.Cut(place, "+")
		if !ok {
			return fmt.Errorf("%q is not a partition", word)
		}
		p := win.Partition{Offset: size(offset), Length: size(length)}
		kind, letter := strings.CutSuffix(kind, "!") // with a drive letter
		if !letter {
			p.Attributes = win.NoDriveLetter
		}
		switch kind {
		case "basic":
			p.Type = win.PartitionBasicData
		case "msr":
			p.Type = win.PartitionMSR
		default:
			number, err := strconv.ParseUint(kind, 0, 8)
			if err != nil {
				return err
			}
			p.MBRType = uint8(number)
		}
		if layout.Style == win.StyleGPT {
			p.ID = win.MustGUID(fmt.Sprintf("eeeeeeee-0000-4000-8000-%012x", p.Offset))
		}
		layout.Partitions = append(layout.Partitions, p)
	}
	return nil
}

// size reads a size with its unit.
func size(text string) int64 {
	var s winsim.Size
	if err := s.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return int64(s)
}

// askVolume runs the seam's questions to volumes.
func (s *shell) askVolume(command string, argument func(int) string, _ []string) (result string, err error) {
	ctx, n, id := s.t.Context(), s.node, win.VolumeID(argument(0))
	list := func(ids []win.VolumeID) string {
		text := fmt.Sprintf("%d", len(ids))
		for _, id := range ids {
			text += "\n" + string(id)
		}
		return text
	}
	switch command {
	case "VolumeIDs":
		var ids []win.VolumeID
		ids, err = n.VolumeIDs(ctx)
		result = list(ids)
	case "SystemVolumes":
		var ids []win.VolumeID
		ids, err = n.SystemVolumes(ctx)
		result = list(ids)
	case "VolumeExtents":
		var extents []win.Extent
		extents, err = n.VolumeExtents(ctx, id)
		for _, e := range extents {
			result += fmt.Sprintf("disk %d: %d+%d\n", e.Disk, e.Offset, e.Length)
		}
	case "FileSystem":
		var info win.FileSystemInfo
		info, err = n.FileSystem(ctx, id)
		if result = info.Name; info.ReadOnly {
			result += ", read-only"
		}
	case "VolumeSpace":
		var space win.Space
		if space, err = n.VolumeSpace(ctx, id); err == nil {
			result = fmt.Sprintf("%d free of %d", space.Free, space.Total)
		}
	case "NTFSVolumeData":
		var data win.NTFSVolumeData
		if data, err = n.NTFSVolumeData(ctx, id); err == nil {
			result = fmt.Sprintf("%d sectors of %d, %d of %d clusters of %d free", data.Sectors, data.BytesPerSector, data.FreeClusters, data.TotalClusters, data.BytesPerCluster)
		}
	case "VolumeOfDrive":
		id, err = n.VolumeOfDrive(ctx, argument(0))
		result = string(id)
	case "Location":
		result, err = n.Location(ctx, win.Following(argument(0)))
	case "VolumePaths":
		var paths []string
		paths, err = n.VolumePaths(ctx, id)
		result = fmt.Sprint(paths)
	default:
		err = errUnknown
	}
	return result, err
}

// changeVolume runs the seam's changes of volumes.
func (s *shell) changeVolume(command string, argument func(int) string, _ []string) (result string, err error) {
	ctx, n, id := s.t.Context(), s.node, win.VolumeID(argument(0))
	switch command {
	case "ExtendVolume":
		sectors, _ := strconv.ParseInt(argument(1), 10, 64)
		err = n.ExtendVolume(ctx, id, sectors)
	case "OnlineVolume":
		err = n.OnlineVolume(ctx, id)
	case "FlushVolume":
		err = n.FlushVolume(ctx, id)
	case "Format":
		err = n.Format(ctx, id, win.FormatOptions{})
	case "FormatLegacy":
		err = n.FormatLegacy(ctx, id, win.FormatOptions{})
	case "FormatAndLeave": // by a caller in another process, who gives up after it has begun
		leaving, leave := context.WithCancel(ctx)
		injection, _ := n.Inject(winsim.Fault{Call: "Format", Times: 1, Do: func(*winsim.Node) { leave() }})
		err = n.Process(nil).Format(leaving, id, win.FormatOptions{})
		synctest.Wait()
		injection.Remove()
	case "RefreshStorageCache":
		err = n.RefreshStorageCache(ctx)
	default:
		err = errUnknown
	}
	var storage winerr.StorageCode
	var legacy winerr.LegacyFormatCode
	switch {
	case errors.As(err, &storage):
		return fmt.Sprintf("storage error %d", uint32(storage)), nil
	case errors.As(err, &legacy):
		return fmt.Sprintf("Win32_Volume error %d", uint32(legacy)), nil
	}
	return result, err
}

// backend runs what happens to a node from outside.
func (s *shell) backend(command string, argument func(int) string, _ []string) (result string, err error) {
	n := s.node
	parsed, _ := strconv.ParseUint(argument(0), 10, 32)
	number := uint32(parsed)
	switch command {
	case "attach": // a blank disk of that size
		number, err = n.AttachDisk(winsim.Disk{Size: winsim.Size(size(argument(0))), SCSI: &winsim.SCSI{Port: 7}})
		result = fmt.Sprintf("disk %d", number)
	case "detach":
		err = n.DetachDisk(number)
	case "reattach":
		number, err = n.ReattachDisk(number)
		result = fmt.Sprintf("disk %d", number)
	case "grow":
		err = n.GrowDisk(number, winsim.Size(size(argument(1))))
	case "info":
		var info winsim.Disk
		if info, err = n.DiskInfo(number); err == nil {
			result = showInfo(info)
		}
	case "remember": // the content of a disk
		s.fingerprints[number], err = n.DiskFingerprint(number)
	case "changed": // since then?
		var now string
		now, err = n.DiskFingerprint(number)
		result = strconv.FormatBool(now != s.fingerprints[number])
	case "sleep":
		var d time.Duration
		if d, err = time.ParseDuration(argument(0)); err == nil {
			err = n.Sleep(s.t.Context(), d)
		}
	default:
		err = errUnknown
	}
	return result, err
}

func showInfo(info winsim.Disk) string {
	text := fmt.Sprintf("%s %s", info.Size, info.Layout)
	if info.Offline {
		text += " offline"
	}
	if info.ReadOnly {
		text += " read-only"
	}
	for i, p := range info.Partitions {
		text += fmt.Sprintf("\n%d: %s at %s %s", i+1, p.Size, p.Offset, p.Type)
		if v := p.Volume; v != nil && !v.Hidden {
			text += fmt.Sprintf(" %s %s", v.ID, v.FileSystem)
			if v.Letter != "" {
				text += " " + v.Letter + ":"
			}
		}
	}
	return text
}
