package devices

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/exchange"
)

// MountManager is the device of Wine's mount manager: it sends a control code, with room
// for an answer.
type MountManager func(code uint32, in []byte, room int) ([]byte, error)

// mountManager stands before Wine's mount manager, and adds the volumes of the node to those
// that Wine knows. FindFirstVolume asks it, and who wants to know the volume of a drive.
//
// Drive C: is Wine's, but goes by the name of the node's, so that Windows seems to run from
// the node's system disk.
type mountManager struct {
	machine win.Machine
	wine    MountManager
}

const (
	mountManagerQueryPoints       = 0x006D0008 // IOCTL_MOUNTMGR_QUERY_POINTS
	mountManagerMountPointCreated = 0x006DC018 // IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_CREATED
	mountManagerMountPointDeleted = 0x006DC01C // IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_DELETED
)

// driveC is how Wine names the volume of drive C:; the last byte is the letter.
const driveC = "Volume{00000000-0000-0000-0000-000000000043}"

func (m mountManager) answer(ctx context.Context, r exchange.Request) ([]byte, error) {
	switch {
	case r.Function != exchange.Control:
		return nil, winerr.InvalidFunction
	case r.Code == mountManagerMountPointCreated, r.Code == mountManagerMountPointDeleted:
		return nil, nil // Wine's does not know them
	}
	ids, err := m.machine.VolumeIDs(ctx)
	if err != nil {
		return nil, err
	}
	system, err := m.machine.SystemVolumes(ctx)
	if err != nil {
		return nil, err
	}
	emulated, wine := encodeUTF16(NameOf(system[0])), encodeUTF16(driveC)
	in := bytes.ReplaceAll(r.Data, emulated, wine)
	for _, id := range ids {
		// Which folders it is mounted at Wine has no way to ask; this says that it has no drive.
		if r.Code == mountManagerQueryPoints && id != system[0] && bytes.Contains(in, encodeUTF16(NameOf(id))) {
			return fitting(r, encodeMountPoints([]string{`\??\` + NameOf(id)}))
		}
	}
	if all := r.Code == mountManagerQueryPoints && len(bytes.Trim(in, "\x00")) == 0; !all {
		out, err := m.wine(r.Code, in, r.Room)
		return bytes.ReplaceAll(out, wine, emulated), err
	}
	const plenty = 64 << 10
	out, err := m.wine(r.Code, in, plenty)
	if err != nil {
		return nil, err
	}
	points := decodeMountPoints(bytes.ReplaceAll(out, wine, emulated))
	for _, id := range ids {
		if link := `\??\` + NameOf(id); !slices.Contains(points, link) {
			points = append(points, link)
		}
	}
	return fitting(r, encodeMountPoints(points))
}

// fitting returns as much of an answer as there is room for. Its beginning says how much is missing.
func fitting(r exchange.Request, b []byte) ([]byte, error) {
	if len(b) > r.Room {
		return b[:r.Room], winerr.MoreData
	}
	return b, nil
}

// NameOf is the name of a volume without what stands around it: Volume{guid}.
func NameOf(id win.VolumeID) string { return strings.TrimPrefix(string(id.Device()), `\\?\`) }

// MOUNTMGR_MOUNT_POINTS: a size, a number, and as many MOUNTMGR_MOUNT_POINTs, each with the
// offset and length of three texts. Callers ask only for the first, the name of the
// link.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/mountmgr/ns-mountmgr-_mountmgr_mount_points
const (
	pointsCount = 4
	pointsFirst = 8
	pointSize   = 24
	pointLength = 4
)

func decodeMountPoints(b []byte) (links []string) {
	if len(b) < pointsFirst {
		return nil
	}
	for i := range int(le.Uint32(b[pointsCount:])) {
		entry := pointsFirst + i*pointSize
		if entry+pointSize > len(b) {
			break
		}
		start := int(le.Uint32(b[entry:]))
		end := start + int(le.Uint16(b[entry+pointLength:]))
		if end > len(b) {
			break
		}
		units := make([]uint16, 0, (end-start)/2)
		for at := start; at+1 < end; at += 2 {
			units = append(units, le.Uint16(b[at:]))
		}
		links = append(links, string(utf16.Decode(units)))
	}
	return links
}

func encodeMountPoints(links []string) []byte {
	b := make([]byte, pointsFirst+len(links)*pointSize)
	for i, link := range links {
		entry := pointsFirst + i*pointSize
		le.PutUint32(b[entry:], uint32(len(b)))
		text := encodeUTF16(link)
		le.PutUint16(b[entry+pointLength:], uint16(len(text)))
		b = append(b, text...)
	}
	le.PutUint32(b, uint32(len(b)))
	le.PutUint32(b[pointsCount:], uint32(len(links)))
	return b
}

func encodeUTF16(text string) (b []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		b = le.AppendUint16(b, unit)
	}
	return b
}
