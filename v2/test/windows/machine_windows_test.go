package windows_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// openHere prepares this machine. If it fails, it has changed nothing.
func (n *node) openHere() (closeMachine func() error, err error) {
	ctx, cancel := context.WithTimeout(interrupted, 5*time.Minute)
	defer cancel()
	if runFolder, err = winpath.Clean(*dirFlag); err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	if n.about, err = describe(); err != nil {
		return nil, err
	}
	if err := n.check(ctx); err != nil {
		return nil, err
	}
	if *afterRestart {
		if _, err := os.Lstat(n.path(restartFile)); err != nil {
			return nil, fmt.Errorf("-dir: no run with -before-restart has left anything in %s", runFolder)
		}
	} else if err := os.Mkdir(runFolder, 0o700); err != nil {
		return nil, fmt.Errorf("-dir: %w; name a new folder in one that exists, or remove what a killed run has left", err)
	}
	if err := n.prepare(); err != nil {
		if !*afterRestart {
			err = errors.Join(err, n.removeFolder())
		}
		return nil, err
	}
	return func() error {
		if _, err := os.Lstat(n.path(restartFile)); err == nil && *beforeRestart {
			fmt.Println("Restart this machine now. Then run csi-proxy-verify again, with -after-restart in place of -before-restart.")
			return nil
		}
		return n.removeFolder()
	}, nil
}

// runFolder is -dir, for everything that the run makes.
var runFolder string

func (n *node) path(name string) string { return filepath.Join(runFolder, name) }

// check fails if this machine, the folder or a disk that was named cannot be used. It changes nothing.
func (n *node) check(ctx context.Context) error {
	if err := needAdministrator(); err != nil {
		return err
	}
	for _, number := range n.named {
		if *afterRestart { // it has a volume of ours
			break
		}
		if err := checkEmpty(ctx, number); err != nil {
			return fmt.Errorf("-disk: %w; clear a disk so: Clear-Disk -Number %d -RemoveData", err, number)
		}
	}
	parent, ok := winpath.Parent(runFolder)
	if !ok {
		return fmt.Errorf("-dir: %s is a whole drive; name a folder on it, such as %sverify", runFolder, runFolder)
	}
	location, err := machine.Location(ctx, win.Following(parent))
	if err != nil {
		return fmt.Errorf("-dir: find the volume of %s: %w", parent, err)
	}
	id, _ := win.VolumeOf(location)
	switch info, err := machine.FileSystem(ctx, id); {
	case err != nil:
		return fmt.Errorf("-dir: find the file system of %s: %w", parent, err)
	case info.Name != "NTFS": // mounted folders need it
		return fmt.Errorf("-dir: %s is on a volume with %s; name a folder on NTFS", parent, info.Name)
	}
	const needed = 4 << 30 // for virtual disks
	switch space, err := machine.PathSpace(ctx, win.Following(parent)); {
	case err != nil:
		return fmt.Errorf("-dir: find the free space of %s: %w", parent, err)
	case space.Free < needed && n.fileBacked:
		return fmt.Errorf("-dir: %s has %d MB free; virtual disks need %d MB", parent, space.Free>>20, int64(needed)>>20)
	}
	return nil
}

func needAdministrator() error {
	if !onWine() && !windows.GetCurrentProcessToken().IsElevated() { // Wine knows no rights
		return errors.New("only administrators can ask and attach disks; start the program from an elevated prompt")
	}
	return nil
}

// openBrief prepares this machine for questions that change nothing. The guard knows of nothing that may be changed.
func openBrief() (err error) {
	this = &node{}
	if this.about, err = describe(); err == nil {
		err = needAdministrator()
	}
	if err == nil {
		restrict()
		err = this.open(machine)
	}
	return err
}

// prepare makes the folders of the run, and the node that the tests see.
func (n *node) prepare() error {
	for _, dir := range []string{"disks", "files", "temporary"} {
		if err := os.MkdirAll(n.path(dir), 0o700); err != nil {
			return err
		}
	}
	// Administrators have it, but attaching takes it enabled.
	if err := winapi.ManageVolumePrivilege.Enable(); err != nil && n.fileBacked {
		return fmt.Errorf("SeManageVolumePrivilege: %w", err)
	}
	// Tests make temporary directories in the folder, too. For the system, Windows ignores TMP.
	for _, name := range []string{"TMP", "GOTMPDIR"} {
		if err := os.Setenv(name, n.path("temporary")); err != nil {
			return err
		}
	}
	if *afterRestart && n.share != nil {
		n.mapped[n.share.remote], n.mapped[n.share.persistent()] = true, true
	}
	n.root = n.path("files")
	n.newDisk = n.nextNamed
	if n.fileBacked {
		n.newDisk = n.newVirtual
	}
	n.writeFile, n.readFile, n.hold = writeFile, readFile, hold
	n.junction, n.swap, n.turnIntoJunction, n.mountFolder = junction, swap, turnIntoJunction, mountFolder
	n.raw, n.content, n.controlDevice, n.formatUnforced = rawAnswers, content, controlDevice, formatUnforced
	n.services = &services{missing: n.path("missing")}
	if err := junction(n.path("junction"), runFolder); err != nil {
		n.noLinks = fmt.Sprintf("this file system stores no links: %v", winerr.CodeOf(err))
	}
	_ = os.Remove(n.path("junction")) // it, or the directory that is left without links
	if onWine() {
		n.longestPath = 4000 // Linux has 4096 bytes, with the path of drive C
		n.cannot = map[string]string{"concurrent Rescans all succeed": "Wine has no tree of devices"}
		if n.noLinks == "" {
			// Then the rig gives volumes files, in directories of the machine that Wine runs on.
			const measured = "Wine measures a directory in place of the volume"
			n.cannot["ResizeVolume grows and never shrinks"] = measured
			n.cannot["GetVolumeStats and WriteVolumeCache need a volume"] = measured
		}
	}
	return n.open(machine)
}

// removeFolder removes the folder of the run. It follows no link out of it.
func (n *node) removeFolder() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	files, err := filesystem.New(fsapi.NewOn(machine)) // past the guard, which lets only files of questions be removed
	if err != nil {
		return err
	}
	return await(ctx, machine, func() error { // virus scanners let go of files a little later
		_, err := files.Rmdir(ctx, &filesystem.RmdirRequest{Path: runFolder, Force: true})
		return err
	})
}

var wineVersion = windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version")

// onWine reports whether this is not Windows.
func onWine() bool { return wineVersion.Find() == nil }

// describe says what this machine is, without names.
func describe() (string, error) {
	about := []string{local.Build(), runtime.GOARCH}
	if _, ok := os.LookupEnv("CONTAINER_SANDBOX_MOUNT_POINT"); ok {
		about = append(about, "HostProcess container")
	}
	if onWine() {
		text, _, _ := wineVersion.Call()
		version := windows.BytePtrToString((*byte)(unsafe.Add(unsafe.Pointer(nil), text))) // memory of Wine never moves
		return "Wine " + version + ", " + strings.Join(about, ", "), nil
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Windows NT\CurrentVersion`, registry.QUERY_VALUE)
	if err != nil {
		return "", err
	}
	defer key.Close()
	product, _, err := key.GetStringValue("ProductName")
	if err != nil {
		return "", err
	}
	if installation, _, err := key.GetStringValue("InstallationType"); err == nil {
		about = append(about, installation)
	}
	if revision, _, err := key.GetIntegerValue("UBR"); err == nil {
		about[0] += fmt.Sprintf(".%d", revision)
	}
	return product + ", " + strings.Join(about, ", "), nil
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func readFile(path string) (string, error) {
	content, err := os.ReadFile(path)
	return string(content), err
}

func swap(path, target string) error {
	if err := os.Rename(path, path+".moved"); err != nil {
		return winapi.Error(err)
	}
	return junction(path, target)
}

// mountFolder lets Windows make a mounted folder.
func mountFolder(path string, id win.VolumeID) error {
	folder, err := windows.UTF16PtrFromString(path + `\`)
	if err != nil {
		return err
	}
	volume, err := windows.UTF16PtrFromString(string(id))
	if err != nil {
		return err
	}
	return winapi.Error(windows.SetVolumeMountPoint(folder, volume))
}

// hold opens a file without sharing it.
func hold(path string) (release func(), err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return nil, winapi.Error(err)
	}
	return sync.OnceFunc(func() { windows.CloseHandle(handle) }), nil
}

// content is a fingerprint of where partition tables and the beginning of the first volume are.
func content(number uint32) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	device := win.PhysicalDrive(number)
	geometry, err := machine.DiskGeometry(ctx, device)
	if err != nil {
		return "", err
	}
	const chunk, head = 1 << 20, 32
	hash := sha256.New()
	for i := range int64(head + 1) {
		offset := i * chunk
		if i == head {
			offset = geometry.Size - chunk
		}
		buffer, err := machine.ReadDevice(ctx, device, offset, chunk)
		if err != nil {
			return "", fmt.Errorf("read disk %d at %d: %w", number, offset, err)
		}
		hash.Write(buffer)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// rawAnswers returns the bytes of answers of a disk that have no names in them.
func rawAnswers(d win.Device) ([]fact, error) {
	device, err := winapi.Open(string(d), winapi.Read)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	var facts []fact
	for _, query := range []struct {
		name string
		code winapi.ControlCode
		size int
	}{
		{"IOCTL_DISK_GET_DRIVE_LAYOUT_EX", winapi.DiskGetDriveLayoutEx, 48 + 16*144},
		{"IOCTL_DISK_GET_DRIVE_GEOMETRY_EX", winapi.DiskGetDriveGeometryEx, 256},
		{"IOCTL_STORAGE_GET_DEVICE_NUMBER", winapi.StorageGetDeviceNumber, 12},
		{"IOCTL_DISK_GET_DISK_ATTRIBUTES", winapi.DiskGetDiskAttributes, 16},
	} {
		bytes, err := device.Query(winapi.Query{Code: query.code, Size: query.size})
		value := fmt.Sprintf("%d bytes: %s", len(bytes), strings.TrimRight(fmt.Sprintf("%x", bytes), "0"))
		if err != nil {
			value = err.Error()
		}
		facts = append(facts, fact{query.name, value})
	}
	return facts, nil
}

func controlDevice(d win.Device, codes ...uint32) []error {
	results := make([]error, len(codes))
	device, err := winapi.Open(string(d), winapi.ReadWrite)
	if err != nil {
		return slices.Repeat([]error{err}, len(codes))
	}
	defer device.Close()
	for i, code := range codes {
		results[i] = device.Control(winapi.ControlCode(code), nil)
	}
	return results
}

func formatUnforced(ctx context.Context, id win.VolumeID) error {
	volume := cim.Object{Namespace: cim.Storage, Class: "MSFT_Volume", Property: "UniqueId", Value: string(id)}
	result, err := cim.Call(ctx, volume, "Format", map[string]any{"FileSystem": "NTFS", "Full": false, "Force": false})
	if err == nil && result != 0 {
		return winerr.StorageCode(result)
	}
	return err
}
