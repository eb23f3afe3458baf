package windows_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// open prepares this machine. First it removes what a killed run has left. If it fails, nothing is left, except what
// waits for -after-restart.
func (o options) open(ctx context.Context) (closeMachine func() error, err error) {
	if err := o.checkMachine(); err != nil {
		return nil, err
	}
	j, err := o.sweep(ctx)
	if err != nil {
		return nil, err
	}
	run := &thisMachine{options: o, journal: j, began: time.Now().Unix(), pool: slices.Clone(o.disks)}
	defer func() {
		switch {
		case err != nil && o.afterRestart:
			err = errors.Join(err, j.close())
		case err != nil:
			err = errors.Join(err, run.close())
		}
	}()
	if o.afterRestart {
		err = run.findFolders()
	} else {
		err = run.makeFolders(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := run.checkVolume(ctx); err != nil {
		return nil, err
	}
	// Administrators have it, but attaching takes it enabled.
	if err := winapi.ManageVolumePrivilege.Enable(); err != nil && o.virtualDisks {
		return nil, fmt.Errorf("SeManageVolumePrivilege: %w", err)
	}
	// Tests make temporary directories in a folder that was named, too. For the system, Windows ignores TMP.
	for _, name := range []string{"TMP", "GOTMPDIR"} {
		if err := os.Setenv(name, run.path("temporary")); err != nil {
			return nil, err
		}
	}
	this, err = run.node()
	return run.close, err
}

// thisMachine is this machine during a run.
type thisMachine struct {
	options

	journal *journal
	began   int64  // differs between runs
	folder  string // of this run

	mu     sync.Mutex
	pool   []uint32 // disks that the operator has named and that are empty
	number int      // of virtual disks made so far
}

func (m *thisMachine) path(name string) string { return filepath.Join(m.folder, name) }

// checkMachine fails if this machine cannot be asked. It changes nothing.
func (o options) checkMachine() error {
	_, wine := wineVersion()
	switch {
	case wine && o.virtualDisks:
		return errors.New("Wine attaches no virtual disks; name empty disks with -disk")
	case !wine && !windows.GetCurrentProcessToken().IsElevated(): // Wine knows no rights
		return errors.New("only administrators can attach disks; start the program from an elevated prompt")
	}
	if o.virtualDisks {
		if err := windows.NewLazySystemDLL("virtdisk.dll").Load(); err != nil {
			return fmt.Errorf("this machine cannot attach virtual disks: %w; name empty disks with -disk", err)
		}
	}
	return nil
}

// checkDir fails if -dir is a link or belongs to Windows, by whatever way it leads there.
func (o options) checkDir(ctx context.Context) error {
	machine := local.Machine()
	system, err := windows.GetSystemWindowsDirectory()
	if err != nil {
		return fmt.Errorf("the directory of Windows: %w", err)
	}
	windowsAt, err := machine.Location(ctx, win.Following(system))
	if err != nil {
		return fmt.Errorf("the directory of Windows: %w", err)
	}
	switch info, err := machine.FileInfo(ctx, win.Anywhere(o.dir)); {
	case err == nil && info.Tag != 0:
		return fmt.Errorf("-dir: %s is a link or a mounted folder; name an ordinary folder", o.dir)
	case err == nil && !info.Directory:
		return fmt.Errorf("-dir: %s is a file; name a folder", o.dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("-dir: %w", err)
	}
	for dir, ok := o.dir, true; ok; dir, ok = winpath.Parent(dir) { // the nearest that exists
		switch at, err := machine.Location(ctx, win.Following(dir)); {
		case err == nil && winpath.Contains(windowsAt, at):
			return fmt.Errorf("-dir: %s belongs to Windows; name a folder of its own, such as C:\\verify", o.dir)
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("-dir: whether %s belongs to Windows is unknown: %w", dir, err)
		}
	}
	return fmt.Errorf("-dir: %s is on a drive that does not exist", o.dir)
}

// sweep opens the journal and removes what it names, except what waits for -after-restart.
func (o options) sweep(ctx context.Context) (*journal, error) {
	if err := o.checkDir(ctx); err != nil {
		return nil, err
	}
	j, err := openJournal(o.dir)
	if err != nil {
		return nil, err
	}
	if o.afterRestart {
		return j, nil
	}
	if err := o.clean(ctx, j, os.Stdout); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what the last run has left: %w", err), j.close())
	}
	return j, nil
}

// clean removes what a journal names, the last first: a service depends on earlier ones. It tries all entries. What it
// cannot remove stays in the journal.
func (o options) clean(ctx context.Context, j *journal, say io.Writer) (failed error) {
	for _, k := range []kind{restartKind, diskKind, portalKind, mappingKind, serviceKind, folderKind} {
		for _, e := range slices.Backward(j.find(k)) {
			removed, err := o.remove(ctx, j, e, say)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s is left: %w", e, err))
			}
			if err != nil || !removed {
				continue
			}
			j.remove(e)
			if k != restartKind {
				fmt.Fprintf(say, "Removed what was left: %s.\n", e)
			}
		}
	}
	return failed
}

// remove removes one thing. removed is false for a disk that was not named again.
func (o options) remove(ctx context.Context, j *journal, e entry, say io.Writer) (removed bool, err error) {
	switch e.Kind {
	case folderKind:
		err = o.removeFolder(ctx, filepath.Join(j.dir, e.Name), say)
	case serviceKind:
		err = removeService(ctx, e.Name)
	case mappingKind:
		err = ignoreMissing(local.Machine().RemoveSMBMapping(ctx, e.Name, true))
	case portalKind:
		err = removePortal(ctx, e.Name)
	case diskKind:
		return o.wipeLeft(ctx, j, e, say)
	case dirKind, restartKind:
	}
	return err == nil, err
}

// removeFolder removes the folder of a run. It follows no link out of it.
func (o options) removeFolder(ctx context.Context, path string, say io.Writer) error {
	if inside := filepath.Join(path, insideFolder); isThere(filepath.Join(inside, journalName)) {
		j, err := openJournal(inside)
		if err != nil {
			return err
		}
		if err := errors.Join(o.clean(ctx, j, say), j.close()); err != nil {
			return err
		}
	}
	detachAll(path)
	files, err := filesystem.New(fsapi.NewOn(local.Machine()), filesystem.WorkingDirs(filepath.Dir(path)))
	if err == nil {
		_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path, Force: true})
	}
	return err
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func removePortal(ctx context.Context, name string) error {
	portals, err := local.Machine().ReportSendTargetPortals(ctx)
	for _, known := range portals {
		if known.Portal.String() == name {
			return local.Machine().RemoveSendTargetPortal(ctx, known)
		}
	}
	return err
}

// close removes everything that the run has made, unless it waits for a restart.
func (m *thisMachine) close() error {
	if m.beforeRestart && len(m.journal.find(restartKind)) > 0 {
		fmt.Printf("Restart this machine now, and run csi-proxy-verify again with -after-restart -dir %s %s\n", m.dir, m.forRestart())
		return m.journal.file.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// After an interrupt a test may still hold a file for a moment.
	err := await(ctx, func() error { return m.clean(ctx, m.journal, io.Discard) })
	return errors.Join(err, m.journal.close())
}

// findFolders finds the folders of the run before the restart.
func (m *thisMachine) findFolders() error {
	left := m.journal.find(restartKind)
	switch {
	case len(left) == 0:
		return fmt.Errorf("no run with -before-restart has left anything in %s", m.dir)
	case left[0].Detail != m.forRestart():
		return fmt.Errorf("the run before the restart had other flags; give the same: %s", left[0].Detail)
	}
	m.folder = filepath.Join(m.dir, left[0].Name)
	return nil
}

// makeFolders checks what was named, and makes the folders of a run.
func (m *thisMachine) makeFolders(ctx context.Context) error {
	name := fmt.Sprintf("run-%d", m.began)
	m.folder = filepath.Join(m.dir, name)
	for _, number := range m.disks {
		if err := checkEmpty(ctx, number); err != nil {
			return fmt.Errorf("-disk: %w", err)
		}
	}
	if err := m.checkShare(ctx); err != nil {
		return err
	}
	if err := m.journal.add(entry{Kind: folderKind, Name: name}); err != nil {
		return err
	}
	if err := mkdir(m.folder); err != nil { // -dir may be open to others
		return err
	}
	for _, dir := range []string{"disks", "files", "temporary"} {
		if err := os.Mkdir(m.path(dir), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// private lets only the system and administrators in. What is in a folder with it inherits it. Below C:\ all
// authenticated users would otherwise be allowed to make and change files.
func private() (*windows.SecurityAttributes, error) {
	descriptor, err := windows.SecurityDescriptorFromString("D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)")
	return &windows.SecurityAttributes{
		Length: uint32(reflect.TypeFor[windows.SecurityAttributes]().Size()), SecurityDescriptor: descriptor,
	}, err
}

// mkdir makes a folder that only administrators can change.
func mkdir(dir string) error {
	name, err := windows.UTF16PtrFromString(dir)
	if err == nil {
		var attributes *windows.SecurityAttributes
		if attributes, err = private(); err == nil {
			err = windows.CreateDirectory(name, attributes)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}

// openAlone opens a file that others may only read, and none but administrators if it makes it. It fails if the file
// belongs to someone who could not have run this program: the next run removes what the journal names.
func openAlone(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	attributes, err := private()
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_DELETE,
		attributes, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, fmt.Errorf("%w; is another csi-proxy-verify at work in this folder?", err)
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(handle), path)
	descriptor, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	owner, _, err := descriptor.Owner()
	if err == nil {
		var user *windows.Tokenuser
		user, err = windows.GetCurrentProcessToken().GetTokenUser()
		if err == nil && !(owner.Equals(user.User.Sid) || owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) || owner.IsWellKnown(windows.WinLocalSystemSid)) {
			err = fmt.Errorf("it belongs to %s, who is neither an administrator nor the present user; look who wrote it, then delete it", owner)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// spaceNeeded is how much the virtual disks take at most.
const spaceNeeded = 4 << 30

// checkVolume fails unless the folder is on NTFS, which mounted folders need, and has room.
func (m *thisMachine) checkVolume(ctx context.Context) error {
	machine := local.Machine()
	location, err := machine.Location(ctx, win.Following(m.folder))
	if err != nil {
		return fmt.Errorf("find the volume of %s: %w", m.folder, err)
	}
	id, _ := win.VolumeOf(location)
	switch info, err := machine.FileSystem(ctx, id); {
	case err != nil:
		return fmt.Errorf("find the file system of %s: %w", m.dir, err)
	case info.Name != "NTFS":
		return fmt.Errorf("%s is on a volume with %s; name a folder on NTFS with -dir", m.dir, info.Name)
	}
	switch space, err := machine.PathSpace(ctx, win.Following(m.folder)); {
	case err != nil:
		return fmt.Errorf("find the free space of %s: %w", m.dir, err)
	case space.Free < spaceNeeded && m.virtualDisks:
		return fmt.Errorf("%s has %d MB free; virtual disks need %d MB: make room, or name another folder with -dir, or empty disks with -disk", m.dir, space.Free>>20, int64(spaceNeeded)>>20)
	}
	return nil
}

// checkShare maps the share for a moment: a wrong password shows now, and not after an hour.
func (m *thisMachine) checkShare(ctx context.Context) error {
	if m.share == nil {
		return nil
	}
	machine := local.Machine()
	switch _, err := machine.SMBMapping(ctx, m.share.remote); {
	case err == nil:
		return fmt.Errorf("-share: %s is mapped already; name a share that is not in use, or remove the mapping", m.share.remote)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("-share: whether %s is mapped is unknown: %w", m.share.remote, err)
	}
	if err := m.journal.add(entry{Kind: mappingKind, Name: m.share.remote}); err != nil {
		return err
	}
	if err := machine.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: m.share.remote, User: m.share.user, Password: m.share.password}); err != nil {
		return fmt.Errorf("-share: %s cannot be mapped: %w; check -user and -password-file", m.share.remote, err)
	}
	if err := machine.RemoveSMBMapping(ctx, m.share.remote, true); err != nil {
		return fmt.Errorf("-share: %w", err)
	}
	m.journal.remove(entry{Kind: mappingKind, Name: m.share.remote})
	return nil
}

// wineVersion returns the version of Wine, if this is not Windows.
func wineVersion() (version string, ok bool) {
	proc := windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version")
	if proc.Find() != nil {
		return "", false
	}
	text, _, _ := proc.Call()
	return windows.BytePtrToString((*byte)(unsafe.Add(unsafe.Pointer(nil), text))), true // memory of Wine never moves
}

// describe says what this machine is, without names.
func describe() (string, error) {
	about := []string{local.Build(), runtime.GOARCH}
	if _, ok := os.LookupEnv("CONTAINER_SANDBOX_MOUNT_POINT"); ok {
		about = append(about, "HostProcess container")
	}
	if version, ok := wineVersion(); ok {
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

// node is this machine as the tests see it.
func (m *thisMachine) node() (*node, error) {
	about, err := describe()
	if err != nil {
		return nil, err
	}
	n := &node{
		about:            about,
		root:             m.path("files"),
		newDisk:          m.newDisk,
		writeFile:        writeFile,
		readFile:         readFile,
		junction:         junction,
		swap:             swap,
		turnIntoJunction: turnIntoJunction,
		mountFolder:      mountFolder,
		services:         &services{journal: m.journal, run: m.began, missing: m.path("missing"), events: map[string]windows.Handle{}},
		hold:             hold,
		raw:              rawAnswers,
		content:          content,
		share:            m.share,
		mappings:         m.mappings,
		portal:           m.portal,
		fileBacked:       m.virtualDisks,
		journal:          m.journal,
		options:          m.options,
		folder:           m.folder,
	}
	if err := junction(m.path("junction"), m.folder); err != nil {
		n.noLinks = fmt.Sprintf("this file system stores no links: %v", winerr.CodeOf(err))
	}
	_ = os.Remove(m.path("junction")) // it, or the directory that is left without links
	if _, wine := wineVersion(); wine {
		n.longestPath = 4000 // Linux has 4096 bytes, with the path of drive C
		n.cannot = map[string]string{"concurrent Rescans all succeed": "Wine has no tree of devices"}
		if n.noLinks == "" {
			// Then the rig gives volumes files, in directories of the machine that Wine runs on.
			const measured = "Wine measures a directory in place of the volume"
			n.cannot["ResizeVolume grows and never shrinks"] = measured
			n.cannot["GetVolumeStats and WriteVolumeCache need a volume"] = measured
		}
	}
	return n, n.open(local.Machine())
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
	machine, device := local.Machine(), win.PhysicalDrive(number)
	geometry, err := machine.DiskGeometry(ctx, device)
	if err != nil {
		return "", err
	}
	const chunk, head = 1 << 20, 32
	hash, buffer := sha256.New(), make([]byte, chunk)
	for i := range int64(head + 1) {
		offset := i * chunk
		if i == head {
			offset = geometry.Size - chunk
		}
		if err := machine.ReadDevice(ctx, device, offset, buffer); err != nil {
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
