package replay

import (
	"encoding/json"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
)

// ahead finds the calls that are made later. It reads a recording once: reading on from each call would take a
// time that grows with the square of their number.
type ahead struct {
	calls []record.Call
	// at has the indexes of calls, in order.
	at map[about][]int
	// volumes are those that calls are about, sorted.
	volumes []win.VolumeID
	// rescans has the index at which the last run of rescans up to a call begins, and ends; -1 if there is none.
	rescans []struct{ begin, end int }
}

// about is what a call that succeeded is about: a device or a volume, and its method. An empty one stands for
// all. The calls about an object that failed have one method.
type about struct{ object, method string }

// failed is the method of calls that failed.
const failed = "failed"

func readAhead(calls []record.Call) *ahead {
	a := &ahead{calls: calls, at: map[about][]int{}}
	run := struct{ begin, end int }{-1, -1}
	for i, c := range calls {
		if rescans[c.Method] {
			if run.end != i-1 || i == 0 {
				run.begin = i
			}
			run.end = i
		}
		a.rescans = append(a.rescans, run)
		a.add(i, c)
	}
	slices.Sort(a.volumes)
	return a
}

func (a *ahead) add(i int, c record.Call) {
	if c.Error == nil {
		a.note(i, "", c.Method)
	}
	var in struct {
		ID win.VolumeID
		D  win.Device
	}
	if len(c.In) == 0 || json.Unmarshal(c.In, &in) != nil {
		return
	}
	if c.Error != nil {
		a.note(i, string(in.D), failed)
		return
	}
	if in.D != "" {
		a.note(i, string(in.D), "")
		a.note(i, string(in.D), c.Method)
	}
	if id, ok := win.VolumeOf(string(in.D)); ok && in.ID == "" {
		in.ID = id
	}
	if in.ID == "" {
		return
	}
	if len(a.at[about{string(in.ID), ""}]) == 0 {
		a.volumes = append(a.volumes, in.ID)
	}
	a.note(i, string(in.ID), "")
	a.note(i, string(in.ID), c.Method)
}

func (a *ahead) note(i int, object, method string) {
	a.at[about{object, method}] = append(a.at[about{object, method}], i)
}

// next returns the index of the first call after call i; the number of calls if there is none.
func (a *ahead) next(i int, object, method string) int {
	all := a.at[about{object, method}]
	if k, _ := slices.BinarySearch(all, i+1); k < len(all) {
		return all[k]
	}
	return len(a.calls)
}

// first takes the first answer of an object after call i, and before call until.
func first[T any](a *ahead, answer *record.Answer[T], i, until int, object, method string) {
	answer.Error = &record.Failure{Kind: "not recorded"}
	if k := a.next(i, object, method); k < until && json.Unmarshal(a.calls[k].Out, &answer.Value) == nil {
		answer.Error = nil
	}
}

// disk collects the first answers about a disk after call i, up to where its table is the host's.
func (a *ahead) disk(i int, device win.Device) record.Disk {
	d, object := record.Disk{Device: device}, string(device)
	until := min(a.next(i, object, "CreateDisk"), a.next(i, object, "SetDriveLayout"))
	first(a, &d.Number, i, until, object, "DeviceNumber")
	first(a, &d.Descriptor, i, until, object, "DeviceDescriptor")
	first(a, &d.Identifiers, i, until, object, "DeviceIdentifiers")
	first(a, &d.Location, i, until, object, "DeviceLocation")
	first(a, &d.Address, i, until, object, "SCSIAddress")
	first(a, &d.Geometry, i, until, object, "DiskGeometry")
	first(a, &d.Attributes, i, until, object, "DiskAttributes")
	first(a, &d.Layout, i, until, object, "DriveLayout")
	return d
}

// volume collects the first answers about a volume after call i, up to where a call changes it.
func (a *ahead) volume(i int, id win.VolumeID) record.Volume {
	v, object, until := record.Volume{ID: id}, string(id), len(a.calls)
	for _, method := range []string{"Format", "FormatLegacy", "SetVolumeLabel", "SetRootSecurity", "ExtendVolume"} {
		until = min(until, a.next(i, object, method))
	}
	first(a, &v.Number, i, until, object, "DeviceNumber")
	first(a, &v.Extents, i, until, object, "VolumeExtents")
	first(a, &v.FileSystem, i, until, object, "FileSystem")
	first(a, &v.Space, i, until, object, "VolumeSpace")
	first(a, &v.NTFS, i, until, object, "NTFSVolumeData")
	first(a, &v.RootAccess, i, until, object, "RootSecurity")
	return v
}
