package machine

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// start makes the machine of a test.
func start(t *testing.T) {
	t.Helper()
	m, err := newMachine(filepath.Join(t.TempDir(), "files"))
	if err != nil {
		t.Fatal(err)
	}
	here = m
}

// run runs a command that must succeed, and returns what it prints.
func run(t *testing.T, command string, env ...string) string {
	t.Helper()
	cmd := Command("powershell", "/c", command)
	cmd.Env = env
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
	return strings.TrimSpace(string(output))
}

// refuse runs a command that must fail with a text.
func refuse(t *testing.T, command, want string) {
	t.Helper()
	output, err := Command("powershell", "/c", command).CombinedOutput()
	if err == nil || !strings.Contains(string(output), want) {
		t.Errorf("%s: %v with %q, want an error with %q", command, err, output, want)
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestFiles(t *testing.T) {
	start(t)
	const dir = `C:\var\lib\kubelet\testdir\a`
	if err := MkdirAll(dir, ModeDir); err != nil {
		t.Fatal(err)
	}
	if !here.node.Exists(dir) {
		t.Error("the node does not have the directory")
	}
	if err := Symlink(dir, dir+"-link"); err != nil {
		t.Fatal(err)
	}
	if info, err := here.node.Filesystem().IsSymlink(dir + "-link"); err != nil || !info {
		t.Errorf("the node's link: %v, %v", info, err)
	}
	file, err := Create(dir + `\file`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := ReadFile(dir + `-link\file`); err != nil || string(content) != "content" {
		t.Errorf("the file through the link: %q, %v", content, err)
	}
	if content, err := here.node.ReadFile(dir + `\file`); err != nil || content != "content" {
		t.Errorf("the node's file: %q, %v", content, err)
	}
	if entries, err := ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "file" {
		t.Errorf("the directory: %v, %v", entries, err)
	}
	if err := RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir + `\file`); !errors.Is(err, ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
}

func TestJoin(t *testing.T) {
	for want, elements := range map[string][]string{
		`C:\var\lib\testdir\a\b`: {`C:\var\lib`, "testdir", "a/b/"},
		`C:\a`:                   {`C:\a\`, ""},
		`\\server\share\x`:       {`\\server\share`, "x"},
	} {
		expect(t, strings.Join(elements, ","), Join(elements...), want)
	}
}

func TestVirtualDisk(t *testing.T) {
	start(t)
	const path = `C:\var\lib\kubelet\plugins\x\disk.vhdx`
	run(t, `mkdir C:\var\lib\kubelet\plugins\x`)
	refuse(t, `mkdir C:\var\lib\kubelet\plugins\x`, "exists")
	run(t, `New-VHD -Path `+path+` -SizeBytes 1073741824`)
	refuse(t, `New-VHD -Path `+path+` -SizeBytes 1`, "exists")
	expect(t, "the number before it is attached", run(t, `(Get-VHD -Path `+path+`).DiskNumber`), "")
	run(t, `Mount-VHD -Path `+path)
	number := run(t, `(Get-VHD -Path `+path+`).DiskNumber`)
	expect(t, "the number", number, "3")
	run(t, `Initialize-Disk -Number 3 -PartitionStyle GPT`)
	run(t, `New-Partition -DiskNumber 3 -UseMaximumSize`)
	refuse(t, `New-Partition -DiskNumber 3 -UseMaximumSize`, "not empty")
	if info, err := here.node.DiskInfo(3); err != nil || len(info.Partitions) != 2 || info.Partitions[1].VolumeID == "" {
		t.Errorf("the disk: %+v, %v", info, err)
	}
	run(t, `Get-Disk -Number 3 | Set-Disk -IsOffline $true`)
	expect(t, "offline", run(t, `Get-Disk -Number 3 | Select-Object -ExpandProperty IsOffline`), "True")
	run(t, `Get-Disk -Number 3 | Set-Disk -IsOffline:$false`)
	expect(t, "online", run(t, `Get-Disk -Number 3 | Select-Object -ExpandProperty IsOffline`), "False")
	run(t, `Resize-VHD -Path `+path+` -SizeBytes 2147483648`)
	if info, err := here.node.DiskInfo(3); err != nil || info.Size != 2<<30 {
		t.Errorf("the grown disk: %+v, %v", info, err)
	}
	run(t, `Dismount-VHD -Path `+path)
	refuse(t, `Dismount-VHD -Path `+path, "not attached")
	refuse(t, `Get-Disk -Number 3`, "disk")
	run(t, `rm `+path)
	refuse(t, `Get-VHD -Path `+path, "no virtual disk")
	run(t, `rmdir C:\var\lib\kubelet\plugins\x\`)
	expect(t, "drive C", run(t, `(Get-Partition -DriveLetter C | Get-Volume).UniqueId`), `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`)
}

func TestServices(t *testing.T) {
	start(t)
	if err := here.node.SetServiceState("MSiSCSI", winsim.ServiceRunning); err != nil {
		t.Fatal(err)
	}
	status := `Get-Service -Name "MSiSCSI" | Select-Object -ExpandProperty Status`
	expect(t, "started", run(t, status), "Running")
	run(t, `Get-Service "MsiSCSI" | Stop-Service`)
	expect(t, "stopped", run(t, status), "Stopped")
	var info struct{ Status, StartType int }
	if err := json.Unmarshal([]byte(run(t, `Get-Service -Name "MSiSCSI" | Select-Object Status, StartType | ConvertTo-Json`)), &info); err != nil || info.Status != 1 || info.StartType != 3 {
		t.Errorf("as JSON: %+v, %v", info, err)
	}
	refuse(t, `Stop-Service -Name other`, "other")
	expect(t, "the serial number", run(t, `(Get-CimInstance -ClassName Win32_BIOS).SerialNumber`), "GoogleCloud-0A1B2C3D4E5F60718293A4B5C6D7E8F9")
	expect(t, "the name", run(t, "hostname"), hostname)
}

func TestShare(t *testing.T) {
	start(t)
	env := []string{"username=u", "password=Pa55!", "sharename=s", `path=C:\share`}
	run(t, `$PWord = ConvertTo-SecureString $Env:password -AsPlainText -Force;New-Localuser -name $Env:username -accountneverexpires -password $PWord`, env...)
	refuse(t, `New-SMBShare -Name s -Path C:\share -fullaccess u`, "not a directory")
	run(t, `mkdir C:\share`)
	run(t, `New-SMBShare -Name $Env:sharename -Path $Env:path -fullaccess $Env:username`, env...)
	remote := `\\` + hostname + `\s`
	refuse(t, `(Get-SmbGlobalMapping -RemotePath `+remote+`).Status`, "does not exist")
	request := win.SMBMappingRequest{Remote: remote, User: `domain\u`, Password: win.NewSecret("Pa55!")}
	if err := here.node.CreateSMBMapping(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	expect(t, "the mapping", run(t, `(Get-SmbGlobalMapping -RemotePath `+remote+`).Status`), "OK")
	file, err := Create(remote + `\hello.txt`)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if !here.node.Exists(remote + `\hello.txt`) {
		t.Error("the node does not have the file on the share")
	}
	run(t, `Remove-SMBShare -Name s -Force`)
	run(t, `Remove-Localuser -name u`)
	if err := here.node.CreateSMBMapping(t.Context(), request); err == nil {
		t.Error("the share is still there")
	}
}

func TestTarget(t *testing.T) {
	start(t)
	setup := func(name string) {
		run(t, `New-IscsiVirtualDisk -Path "ramdisk:scratch-`+name+`.vhdx" -Size 100MB | Out-Null`)
		run(t, `$target = New-IscsiServerTarget -TargetName `+name+` -InitiatorIds @("Iqn:*")`)
		run(t, `Add-IscsiVirtualDiskTargetMapping -TargetName `+name+` -DevicePath "ramdisk:scratch-`+name+`.vhdx"`)
	}
	setup("One")
	refuse(t, `Add-IscsiVirtualDiskTargetMapping -TargetName One -DevicePath other`, "no disk")
	run(t, `$chap = New-Object -TypeName System.Management.Automation.PSCredential -ArgumentList ("user", "verysecretpass")
		Set-IscsiServerTarget -TargetName One -EnableChap $true -Chap $chap`)
	if err := here.node.SetServiceState("MSiSCSI", winsim.ServiceRunning); err != nil {
		t.Fatal(err)
	}
	portal := win.TargetPortal{Address: address, Port: 3260}
	if err := here.node.AddSendTargetPortal(t.Context(), portal); err != nil {
		t.Fatal(err)
	}
	login := win.Login{Target: "iqn.1991-05.com.microsoft:" + hostname + "-one-target", Portal: portal}
	if _, err := here.node.Login(t.Context(), login); err == nil {
		t.Error("a login without credentials succeeds")
	}
	refuse(t, `Set-IscsiServerTarget -TargetName One`, "knows it already")
	setup("Two")
	if err := here.node.RefreshSendTargetPortal(t.Context(), portal); err != nil {
		t.Fatal(err)
	}
	login.Target = "iqn.1991-05.com.microsoft:" + hostname + "-two-target"
	if _, err := here.node.Login(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	run(t, "hostname") // time passes, and the disk appears
	expect(t, "the disk", run(t, `(Get-Disk | Where-Object {$_.Bustype -eq "iSCSI"}).Number`), "3")
	run(t, `Get-IscsiTarget | Disconnect-IscsiTarget -Confirm:$false`)
	run(t, `Get-IscsiTargetPortal | Remove-IscsiTargetPortal -confirm:$false`)
	if sessions := here.node.ISCSISessions(); len(sessions) > 0 {
		t.Errorf("sessions are left: %v", sessions)
	}
	if portals, err := here.node.ReportSendTargetPortals(t.Context()); err != nil || len(portals) > 0 {
		t.Errorf("portals are left: %v, %v", portals, err)
	}
}

func TestCommand(t *testing.T) {
	start(t)
	script := filepath.Join(t.TempDir(), "a.ps1")
	if err := os.WriteFile(script, []byte("# a script\nhostname\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := here.node.Now()
	output, err := Command("powershell", "-File", script).Output()
	if err != nil || string(output) != hostname+"\r\n" {
		t.Errorf("a script prints %q, %v", output, err)
	}
	if passed := here.node.Now().Sub(before); passed != commandTime {
		t.Errorf("%s passed on the node", passed)
	}
	for _, args := range [][]string{{"cmd", "/c", "dir"}, {"powershell", "-Encoded", "x"}, {"powershell", "-File", script + "x"}, {"powershell", "/c", "("}} {
		if output, err := Command(args[0], args[1:]...).CombinedOutput(); err == nil {
			t.Errorf("%q prints %q", args, output)
		}
	}
}

func TestGet(t *testing.T) {
	start(t)
	response, err := Get("http://localhost:8888/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "csi_proxy_build_info") {
		t.Errorf("the metrics: %v\n%s", err, body)
	}
	if _, err := Get("http://localhost/other"); err == nil {
		t.Error("another address answers")
	}
}
