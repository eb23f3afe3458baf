package windows_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The tests of this program itself.

// TestSelf_Options: a wrong command line gets one sentence, which names the flag.
func TestSelf_Options(t *testing.T) {
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	twoLines := filepath.Join(dir, "two")
	for path, content := range map[string]string{password: "\uFEFFsecret:\\\r\n", twoLines: "a\nb"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	base := `-emulator=false -dir C:\verify -virtual-disks -answers ` + filepath.Join(dir, "new.jsonl")
	for args, want := range map[string]string{
		`-emulator=false`:                                                  "name a folder",
		`-emulator=false -dir`:                                             "flag needs an argument: -dir",
		`-emulator=false -dir= -virtual-disks`:                             "-dir is empty",
		`-emulator=false -dir verify -virtual-disks`:                       "-dir: ",
		`-emulator=false -dir C:\ -virtual-disks`:                          "whole drive",
		`-emulator=false -dir C:\verify`:                                   "say on which disks",
		`-emulator=false -dir C:\verify -disk 3,3`:                         "disk 3 is named twice",
		`-emulator=false -dir C:\verify -disk -1`:                          `"-1" is not the number of a disk`,
		`-emulator=false -dir C:\verify -disk 3,`:                          `"" is not the number of a disk`,
		base + ` -disk 3`:                                                  "exclude each other",
		base + ` -nonsense`:                                                "not defined: -nonsense; see -h",
		base + ` nonsense`:                                                 `"nonsense" is not a flag`,
		base + ` -share files`:                                             "-share",
		base + ` -user csi`:                                                "are for -share",
		base + ` -share \\files\data -user csi`:                            "belong together",
		base + ` -share \\files\data -user csi -password-file ` + dir:      dir,
		base + ` -share \\files\data -user csi -password-file ` + twoLines: "is not one line of UTF-8",
		base + ` -mappings 3`:                                              "-mappings needs -share",
		base + ` -mappings x`:                                              "-mappings",
		base + ` -portal 10.0.0.10`:                                        "-portal",
		base + ` -portal 10.0.0.10:0`:                                      "is not HOST:PORT",
		base + ` -before-restart -after-restart`:                           "two runs",
		base + ` -cleanup`:                                                 "-cleanup takes only -dir",
		`-emulator -dir C:\verify`:                                         "-dir is for a Windows machine",
	} {
		t.Run(args, func(t *testing.T) {
			if _, err := parse(flag.NewFlagSet("", flag.ContinueOnError), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, want)
			}
		})
	}
	o, err := parse(flag.NewFlagSet("", flag.ContinueOnError), append(strings.Fields(base), "-share", `\\files\data`, "-user", "csi", "-password-file", password))
	if err != nil || string(o.share.password.Bytes()) != `secret:\` {
		t.Errorf("a password file with a mark and a line break: %v", err)
	}
}

// TestSelf_Guard: nothing that was not named can be changed, also by the library.
func TestSelf_Guard(t *testing.T) {
	n, err := emulated() // never the machine itself: if the guard failed, it would be lost
	require.NoError(t, err)
	ctx, m := t.Context(), n.machine
	volumes, err := m.SystemVolumes(ctx)
	if err != nil || len(volumes) == 0 {
		t.Fatalf("the volume of Windows is not known: %v", err)
	}
	system := volumes[0]
	extents, err := m.VolumeExtents(ctx, system)
	if err != nil || len(extents) == 0 {
		t.Fatalf("the disk of Windows is not known: %v", err)
	}
	disk := win.PhysicalDrive(extents[0].Disk)
	root, err := m.OpenDirectory(ctx, win.Following(n.root[:len(`C:\`)]))
	require.NoError(t, err)
	defer root.Close()
	other := win.TargetPortal{Address: "10.9.9.9", Port: 3260}
	for name, err := range map[string]error{
		"SetDiskAttributes":      m.SetDiskAttributes(ctx, disk, win.DiskAttributes{}, win.DiskAttributes{}),
		"CreateDisk":             m.CreateDisk(ctx, disk, win.NewGUID()),
		"SetDriveLayout":         m.SetDriveLayout(ctx, disk, win.DriveLayout{}),
		"GrowPartition":          m.GrowPartition(ctx, disk, 1, 1),
		"ResizePartition":        m.ResizePartition(ctx, extents[0].Disk, win.NewGUID(), 1),
		"Format":                 m.Format(ctx, system, win.FormatOptions{}),
		"SetVolumeLabel":         m.SetVolumeLabel(ctx, system, "x"),
		"SetRootSecurity":        m.SetRootSecurity(ctx, system, "D:P"),
		"CreateDirectory":        root.CreateDirectory(ctx, "csi-proxy-verify-guard"),
		"Remove":                 root.Remove(ctx, "csi-proxy-verify-guard"),
		"SetMountPoint":          root.SetMountPoint(ctx, "csi-proxy-verify-guard", system),
		"StopService":            m.StopService(ctx, "kubelet"),
		"StartService":           m.StartService(ctx, "kubelet"),
		"CreateSMBMapping":       m.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: `\\elsewhere\share`}),
		"RemoveSMBMapping":       m.RemoveSMBMapping(ctx, `\\elsewhere\share`, true),
		"AddSendTargetPortal":    m.AddSendTargetPortal(ctx, other),
		"RemoveSendTargetPortal": m.RemoveSendTargetPortal(ctx, win.SendTargetPortal{Portal: other}),

		"SetInitiatorCHAPSharedSecret": m.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret("0123456789ab")),
	} {
		if !errors.Is(err, winerr.AccessDenied) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v, want access denied by the guard", name, err)
		}
	}
}

// TestSelf_Journal: what a killed run has announced is found again, and an incomplete line does not hurt. What no run
// writes is refused. A folder that was there stays.
func TestSelf_Journal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "verify")
	open := func() *journal {
		t.Helper()
		j, err := openJournal(dir)
		require.NoError(t, err)
		return j
	}
	j := open()
	first, second := entry{Kind: folderKind, Name: "run-1"}, entry{Kind: mappingKind, Name: `\\files\data`}
	for _, e := range []entry{first, second, first} {
		require.NoError(t, j.add(e))
	}
	if _, err := j.file.WriteString(`{"kind":"folder","na`); err != nil { // killed here
		t.Fatal(err)
	}
	j.file.Close()
	j = open()
	j.remove(first)
	require.NoError(t, j.close())
	j = open()
	if got := j.find(mappingKind); len(j.find(folderKind)) > 0 || !slices.Equal(got, []entry{second}) {
		t.Errorf("the journal has %v", j.entries)
	}
	j.remove(second)
	require.NoError(t, j.close())
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, open().close())
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a folder that was there is gone: %v", err)
	}
	for _, text := range []string{
		`{"kind":"folder","name":""}`, `{"kind":"folder","name":"data"}`, `{"kind":"folder","name":"..\\run-1"}`,
		`{"kind":"service","name":"kubelet"}`, `{"kind":"unknown","name":"x"}`, "\x00\x00\x00",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, journalName), []byte(text+"\n"), 0o600))
		if j, err := openJournal(dir); err == nil || !strings.Contains(err.Error(), "then delete the journal") {
			t.Errorf("%s: %v, %v", text, j, err)
		}
	}
}
