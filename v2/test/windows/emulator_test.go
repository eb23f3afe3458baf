package windows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// emulated is an emulated node.
func emulated() (*node, error) {
	model := winsim.Default()
	model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Bus: "usb", NoMedium: true})
	emulator, err := winsim.New(model)
	if err != nil {
		return nil, err
	}
	const root = `C:\verify`
	if err := emulator.Mkdir(root); err != nil {
		return nil, err
	}
	disks := 0
	n := &node{
		about: "the emulated node, not this machine",
		root:  root,
		newDisk: func(_ context.Context, sectorSize uint32) (scratchDisk, error) {
			disks++
			return attach(emulator, winsim.Disk{
				Size: diskSize, SectorSize: sectorSize, Bus: winsim.BusFileBacked,
				Vendor: "Msft", Product: "Virtual Disk", Location: fmt.Sprintf(`C:\scratch\disk-%d.vhdx`, disks),
			})
		},
		writeFile: emulator.WriteFile,
		readFile:  emulator.ReadFile,
		junction:  emulator.Junction,
		swap: func(path, target string) error {
			if err := emulator.Junction(path+".junction", target); err != nil {
				return err
			}
			return emulator.Swap(path, path+".junction")
		},
		turnIntoJunction: func(path, target string) error {
			return emulator.TurnIntoJunction(path, target, uint32(winerr.CantResolveFilename))
		},
		controlDevice: func(d win.Device, codes ...uint32) []error {
			if codes[0] != markVolumeDirty {
				return slices.Repeat([]error{winerr.InvalidFunction}, len(codes))
			}
			return []error{emulator.DamageVolume(string(d)+`\`, winsim.Damage{Dirty: true, Corruption: winsim.Severe})}
		},
		formatUnforced: func(ctx context.Context, id win.VolumeID) error {
			return emulator.Format(ctx, id, win.FormatOptions{})
		},
		mapped:     map[string]bool{},
		services:   &emulatedServices{node: emulator},
		hold:       emulator.Hold,
		content:    emulator.DiskFingerprint,
		share:      &share{remote: `\\files\data`, user: "csi", password: win.NewSecret("csi-Pa55")},
		portal:     &win.TargetPortal{Address: "10.0.0.10", Port: 3260},
		fileBacked: true,
	}
	return n, n.open(emulator)
}

// emulatedServices makes services of an emulated node.
type emulatedServices struct {
	node   *winsim.Node
	number int
}

// install leaves the service to the end of its node.
func (s *emulatedServices) install(_ *testing.T, model serviceModel) (string, error) {
	s.number++
	service := winsim.Service{Name: fmt.Sprintf("csi-proxy-verify-1-%d", s.number), DependsOn: model.dependsOn}
	switch model.program {
	case startsOnRequest:
		service.StartTime = time.Hour
	case programMissing:
		service.StartCode = uint32(winerr.FileNotFound)
	case folderMissing:
		service.StartCode = uint32(winerr.PathNotFound)
	}
	return service.Name, s.node.Add(winsim.Model{Services: []winsim.Service{service}})
}

func (s *emulatedServices) pause(name string) error {
	return s.node.SetServiceState(name, winsim.ServicePaused)
}

func (s *emulatedServices) proceed(name string) error {
	return s.node.SetServiceState(name, winsim.ServiceRunning)
}

// emulatedDisk is a disk of an emulated node.
type emulatedDisk struct {
	node     *winsim.Node
	model    winsim.Disk
	number   uint32
	attached bool
}

func attach(node *winsim.Node, model winsim.Disk) (*emulatedDisk, error) {
	number, err := node.AttachDisk(model)
	if err != nil {
		return nil, err
	}
	return &emulatedDisk{node, model, number, true}, nil
}

func (d *emulatedDisk) Number() uint32 { return d.number }
func (d *emulatedDisk) Size() int64    { return int64(d.model.Size) }
func (d *emulatedDisk) Attached() bool { return d.attached }

func (d *emulatedDisk) Attach(_ context.Context, readOnly bool) error {
	if readOnly {
		return cannotf("the emulator has no disk that becomes read-only while it is detached")
	}
	number, err := d.node.ReattachDisk(d.number)
	if err != nil {
		return err
	}
	d.number, d.attached = number, true
	return nil
}

func (d *emulatedDisk) Detach(context.Context) error {
	d.attached = false
	return d.node.DetachDisk(d.number)
}

func (d *emulatedDisk) Grow(_ context.Context, size int64) (string, error) {
	d.model.Size = winsim.Size(size)
	return "while it is attached", d.node.GrowDisk(d.number, d.model.Size)
}

func (d *emulatedDisk) Clone(context.Context) (scratchDisk, error) {
	model := d.model
	model.Location += ".copy"
	number, err := d.node.CloneDisk(d.number, model)
	if err != nil {
		return nil, err
	}
	return &emulatedDisk{d.node, model, number, true}, nil
}

func (d *emulatedDisk) Write(_ context.Context, offset int64, data []byte) error {
	return d.node.WriteDisk(d.number, offset, data)
}

func (d *emulatedDisk) Remove(ctx context.Context) error {
	if !d.attached {
		return nil
	}
	return d.Detach(ctx)
}
