package machines

import (
	"context"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Emulator is an emulated node as a site. model is usually winsim.Default(); tempDir is a directory of
// this computer.
func Emulator(model winsim.Model, tempDir string) (*verify.Site, error) {
	node, err := winsim.New(model)
	if err != nil {
		return nil, err
	}
	const root = `C:\verify`
	if err := node.Mkdir(root); err != nil {
		return nil, err
	}
	disks := 0
	return &verify.Site{
		About:   answer.Machine{Kind: answer.Emulator, System: "pkg/winsim"},
		Machine: node,
		Root:    root,
		TempDir: tempDir,
		NewDisk: func(_ context.Context, sectorSize uint32) (verify.Disk, error) {
			disks++
			return attach(node, winsim.Disk{
				Size: verify.DiskSize, SectorSize: sectorSize, Bus: winsim.BusFileBacked,
				Vendor: "Msft", Product: "Virtual Disk", Location: fmt.Sprintf(`C:\scratch\disk-%d.vhdx`, disks),
			})
		},
		WriteFile: node.WriteFile,
		ReadFile:  node.ReadFile,
		Junction:  node.Junction,
		Swap: func(path, target string) error {
			if err := node.Junction(path+".junction", target); err != nil {
				return err
			}
			return node.Swap(path, path+".junction")
		},
		TurnIntoJunction: func(path, target string) error {
			return node.TurnIntoJunction(path, target, uint32(winerr.CantResolveFilename))
		},
		Unrecorded: node,
		Services:   &emulatedServices{node: node},
		Hold:       node.Hold,
		Content:    node.DiskFingerprint,
		Share:      &verify.Share{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("csi-Pa55")},
		Portal:     &win.TargetPortal{Address: "10.0.0.10", Port: 3260},
		FileBacked: true,
	}, nil
}

// emulatedServices makes services of an emulated node.
type emulatedServices struct {
	node   *winsim.Node
	number int
}

func (s *emulatedServices) Install(_ context.Context, model verify.ServiceModel) (string, error) {
	s.number++
	service := winsim.Service{Name: fmt.Sprintf("csi-proxy-verify-1-%d", s.number), DependsOn: model.DependsOn}
	switch model.Program {
	case verify.StartsWhenTold:
		service.StartTime = time.Hour
	case verify.ProgramMissing:
		service.StartCode = uint32(winerr.FileNotFound)
	case verify.FolderMissing:
		service.StartCode = uint32(winerr.PathNotFound)
	}
	return service.Name, s.node.AddService(service)
}

func (s *emulatedServices) Pause(name string) error {
	return s.node.SetServiceState(name, winsim.ServicePaused)
}

func (s *emulatedServices) Proceed(name string) error {
	return s.node.SetServiceState(name, winsim.ServiceRunning)
}

// Remove leaves the service to the end of its node.
func (s *emulatedServices) Remove(context.Context, string) error { return nil }

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
		return verify.Cannotf("the emulator has no disk that becomes read-only while it is detached")
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

func (d *emulatedDisk) Clone(context.Context) (verify.Disk, error) {
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
