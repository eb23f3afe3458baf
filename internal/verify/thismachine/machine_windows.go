package thismachine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/journal"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local/localtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/virtdisk"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Machine is this machine during a run.
type Machine struct {
	Site *verify.Site
	// Recording is the file with the recorded calls.
	Recording string

	config  Config
	began   int64  // tells runs apart
	folder  string // of this run
	journal *journal.Journal
	say     func(string)

	recording sync.Mutex   // a question that hangs goes on beside the others
	calls     *record.File // nil after its end

	mu     sync.Mutex
	pool   []uint32 // disks that the operator has named and that are empty
	used   []uint32 // those of them that were used and wiped
	number int      // of the virtual disks made so far
}

// Check reports why this machine cannot be asked, if it cannot. It changes nothing.
func Check(config Config) error {
	system, err := windows.GetSystemWindowsDirectory()
	if err != nil {
		return fmt.Errorf("the directory of Windows: %w", err)
	}
	if winpath.Contains(system, config.Dir) {
		return fmt.Errorf("-dir: %s belongs to Windows; name a folder of its own, such as C:\\verify", config.Dir)
	}
	if _, wine := isWine(); !wine && !windows.GetCurrentProcessToken().IsElevated() { // Wine knows no rights
		return errors.New("only administrators can attach disks; start the program from an elevated prompt")
	}
	if len(config.Disks) == 0 {
		if err := virtdisk.Find(); err != nil {
			return fmt.Errorf("this machine cannot attach virtual disks: %w; name empty disks with -disks", err)
		}
	}
	return nil
}

// Open prepares a run. First it removes what a run has left that was killed.
func Open(ctx context.Context, config Config, say func(string)) (_ *Machine, err error) {
	if err := Check(config); err != nil {
		return nil, err
	}
	j, err := sweep(ctx, config.Dir, say)
	if err != nil {
		return nil, err
	}
	m := &Machine{config: config, began: time.Now().Unix(), journal: j, say: say, pool: slices.Clone(config.Disks)}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close(context.WithoutCancel(ctx)))
		}
	}()
	name := fmt.Sprintf("run-%d", m.began)
	if err := j.Add(journal.Entry{Kind: journal.Folder, Name: name}); err != nil {
		return nil, err
	}
	m.folder = filepath.Join(config.Dir, name)
	if err := journal.Mkdir(m.folder); err != nil { // -dir may be open to others
		return nil, err
	}
	for _, dir := range []string{m.path("disks"), m.path("files"), m.path("temporary")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := m.checkVolume(ctx); err != nil {
		return nil, err
	}
	for _, number := range config.Disks {
		if err := checkEmpty(ctx, number); err != nil {
			return nil, err
		}
	}
	// Administrators have it, but attaching takes it enabled.
	if err := winapi.ManageVolumePrivilege.Enable(); err != nil && len(config.Disks) == 0 {
		return nil, fmt.Errorf("SeManageVolumePrivilege: %w", err)
	}
	about, err := describe()
	if err != nil {
		return nil, err
	}
	m.Recording = m.path("calls.jsonl")
	m.calls, err = record.Open(ctx, local.Machine(), m.Recording, record.Options{
		Program: config.Program, Windows: about.Build, Hash: !config.Names,
		Failed: func(err error) { say("The recording is incomplete: " + err.Error()) },
	})
	if err != nil {
		return nil, err
	}
	if config.Names { // the bytes have names and serial numbers in them
		local.Tap(m.calls.ControlCode, m.calls.Rows)
	}
	m.Site = m.site(about)
	return m, nil
}

// Clean removes what a run has left that was killed.
func Clean(ctx context.Context, dir string, say func(string)) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	j, err := sweep(ctx, dir, say)
	if err != nil {
		return err
	}
	return j.Close()
}

// sweep opens the journal and removes what it names.
func sweep(ctx context.Context, dir string, say func(string)) (*journal.Journal, error) {
	j, _, err := journal.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := clean(ctx, local.Machine(), dir, j, say); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what the last run has left: %w", err), j.Close())
	}
	return j, nil
}

func (m *Machine) path(name string) string { return filepath.Join(m.folder, name) }

// AnnounceZip notes a zip that is about to be made in the folder, so that none is left if this run is killed.
func (m *Machine) AnnounceZip(name string) error {
	return m.journal.Add(journal.Entry{Kind: journal.Zip, Name: name})
}

// KeepZip says that the zip is complete, and stays.
func (m *Machine) KeepZip(name string) error {
	return m.journal.Remove(journal.Entry{Kind: journal.Zip, Name: name})
}

func (m *Machine) isRecording() bool {
	m.recording.Lock()
	defer m.recording.Unlock()
	return m.calls != nil
}

// Keep ends the recording, so that it can be read.
func (m *Machine) Keep() error {
	m.recording.Lock()
	defer m.recording.Unlock()
	if m.calls == nil {
		return nil
	}
	calls := m.calls
	m.calls = nil
	local.Tap(nil, nil)
	return calls.Close()
}

// Close removes everything that the run has made. What it cannot remove stays in the journal.
func (m *Machine) Close(ctx context.Context) error {
	err := m.Keep()
	return errors.Join(err, clean(ctx, local.Machine(), m.config.Dir, m.journal, func(string) {}), m.journal.Close())
}

// detachAll detaches the virtual disks in a folder. Those of a killed process are detached already,
// unless another process holds them.
func detachAll(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "disks", "*.vhdx"))
	if err != nil {
		return err
	}
	for _, path := range files {
		if file, err := virtdisk.Open(path); err == nil {
			_ = file.Detach() // fails if it is not attached
			file.Close()
		}
	}
	return nil
}

// spaceNeeded is how much the virtual disks and the recorded calls take at most.
const spaceNeeded = 4 << 30

// checkVolume fails unless the folder is on NTFS, which mounted folders need, and has room.
func (m *Machine) checkVolume(ctx context.Context) error {
	machine := local.Machine()
	location, err := machine.Location(ctx, win.Following(m.folder))
	if err != nil {
		return fmt.Errorf("find the volume of %s: %w", m.folder, err)
	}
	id, _ := win.VolumeOf(location)
	switch info, err := machine.FileSystem(ctx, id); {
	case err != nil:
		return fmt.Errorf("find the file system of %s: %w", m.config.Dir, err)
	case info.Name != "NTFS":
		return fmt.Errorf("%s is on a volume with %s; name a folder on NTFS with -dir", m.config.Dir, info.Name)
	}
	switch space, err := machine.PathSpace(ctx, win.Following(m.folder)); {
	case err != nil:
		return fmt.Errorf("find the free space of %s: %w", m.config.Dir, err)
	case space.Free < spaceNeeded && len(m.config.Disks) == 0:
		return fmt.Errorf("%s has %d MB free; virtual disks need %d MB: make room, or name another folder with -dir, or empty disks with -disks", m.config.Dir, space.Free>>20, int64(spaceNeeded)>>20)
	}
	return nil
}

// isWine returns the version of Wine, if this is not Windows.
func isWine() (version string, ok bool) {
	proc := windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version")
	if proc.Find() != nil {
		return "", false
	}
	text, _, _ := proc.Call()
	return windows.BytePtrToString(bytePointer(text)), true
}

// describe says what this machine is, without names.
func describe() (answer.Machine, error) {
	about := answer.Machine{
		Kind: answer.Windows, Arch: runtime.GOARCH,
		Build: local.Build(),
	}
	_, about.Container = os.LookupEnv("CONTAINER_SANDBOX_MOUNT_POINT")
	if version, ok := isWine(); ok {
		about.Kind, about.System = answer.Wine, "Wine "+version
		return about, nil
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Windows NT\CurrentVersion`, registry.QUERY_VALUE)
	if err != nil {
		return about, err
	}
	defer key.Close()
	if about.System, _, err = key.GetStringValue("ProductName"); err != nil {
		return about, err
	}
	about.Installation, _, _ = key.GetStringValue("InstallationType") // the answers are of use without it, too
	if revision, _, err := key.GetIntegerValue("UBR"); err == nil {
		about.Build += fmt.Sprintf(".%d", revision)
	}
	return about, nil
}

func (m *Machine) site(about answer.Machine) *verify.Site {
	site := &verify.Site{
		About:            about,
		Machine:          journaled{m.calls.Machine(), m.journal},
		Root:             m.path("files"),
		TempDir:          m.path("temporary"),
		NewDisk:          m.newDisk,
		WriteFile:        writeFile,
		ReadFile:         readFile,
		Junction:         localtest.Junction,
		Swap:             swap,
		TurnIntoJunction: localtest.TurnIntoJunction,
		MountFolder:      mountFolder,
		Unrecorded:       local.Machine(),
		Services:         &services{journal: m.journal, run: m.began, missing: m.path("missing"), events: map[string]windows.Handle{}},
		Hold:             hold,
		Raw:              rawAnswers,
		Content:          content,
		Probes:           probes,
		Share:            m.config.Share,
		Portal:           m.config.Portal,
		FileBacked:       len(m.config.Disks) == 0,
	}
	files, pipes := verify.Suite{Name: "local"}, verify.Suite{Name: "pipe"}
	for _, c := range localtest.Cases {
		files.Cases = append(files.Cases, verify.SuiteCase(c))
	}
	for _, c := range pipetest.NamedPipes().Cases() {
		pipes.Cases = append(pipes.Cases, verify.SuiteCase(c))
	}
	site.Leaves = []verify.Suite{files, pipes}
	if about.Kind == answer.Wine {
		site.LongestPath = 4000
		site.Cannot = map[string]string{
			"concurrent Rescans all succeed": "Wine has no tree of devices",
		}
	}
	if err := localtest.Junction(m.path("junction"), m.folder); err != nil {
		site.NoLinks = fmt.Sprintf("this file system stores no links: %v", winerr.CodeOf(err))
	}
	_ = os.Remove(m.path("junction")) // it, or the directory that is left without links
	if about.Kind == answer.Wine && site.NoLinks == "" {
		// Then the rig gives volumes files, in directories of the machine that Wine runs on.
		const measured = "Wine measures a directory in place of the volume"
		site.Cannot["ResizeVolume grows and never shrinks"] = measured
		site.Cannot["GetVolumeStats and WriteVolumeCache need a volume"] = measured
	}
	return site
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
	return localtest.Junction(path, target)
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

// content is a fingerprint of where partition tables and the beginning of the first volume are. It is
// read past the recorder: a recording has no use for megabytes of zeros.
func content(number uint32) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) //nolint:forbidigo // the suite passes none
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
func rawAnswers(_ context.Context, d win.Device) ([]answer.Fact, error) {
	device, err := winapi.Open(string(d), winapi.Read)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	var facts []answer.Fact
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
		value := fmt.Sprintf("%d bytes: %s", len(bytes), hexText(bytes))
		if err != nil {
			value = err.Error()
		}
		facts = append(facts, answer.Fact{Name: query.name, Value: value})
	}
	return facts, nil
}

// hexText shows bytes without the zeros at their end.
func hexText(b []byte) string {
	last := len(b)
	for last > 0 && b[last-1] == 0 {
		last--
	}
	text := fmt.Sprintf("%x", b[:last])
	if last < len(b) {
		text = strings.TrimSpace(text + fmt.Sprintf(" and %d zeros", len(b)-last))
	}
	return text
}
