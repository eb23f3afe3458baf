package question

var checks = []Question{
	{
		ID:       "Q-pipe-tests",
		Question: "All tests of `internal/daemon/pipe` pass",
	},
	{
		ID:       "Q-pipe-users",
		Question: "An administrator connects from an elevated prompt; an ordinary user, and an administrator from a prompt that is not elevated, get 5",
		NotAsked: "needs sessions of other users",
	},
	{
		ID:       "Q-pipe-ssh",
		Question: "An administrator connects over SSH with a key, over SSH with a password, and in a WinRM session: `csi-proxyctl versions`. The tokens of these sessions can have S-1-5-2; `whoami /groups` shows it",
	},
	{
		ID:       "Q-pipe-container",
		Question: "ContainerAdministrator of a process-isolated container connects; ContainerUser is refused",
		NotAsked: "needs a process-isolated container",
	},
	{
		ID:       "Q-pipe-peer",
		Question: "The daemon names the process and the user of a client in a process-isolated container, of one in a HostProcess container, and of a protected process: `csi_proxy_connections`, and the line of a request at `-v=2`. Expected: the pid is the one on the node, the name that of the program in the container",
		NotAsked: "needs a process-isolated container",
	},
	{
		ID:       "Q-pipe-remote",
		Question: "A remote client (`\\\\node\\pipe\\csi-proxy-disk-v1`) is refused",
	},
	{
		ID:       "Q-second-daemon",
		Question: "A second daemon ends with exit code 3 and names the first, also when another user runs it",
		NotAsked: "needs two daemons; `TestListen_SecondIsRefused` of Q-pipe-tests shows a part",
	},
	{
		ID:       "Q-service-tests",
		Question: "`CSI_PROXY_TEST_SERVICE=1 go test ./cmd/csi-proxy` passes, as an administrator",
		NotAsked: "would install or stop services of this machine",
	},
	{
		ID:       "Q-preshutdown",
		Question: "At shutdown the service gets Preshutdown and waits for a call; with the kubelet's graceful node shutdown it gets it after the kubelet, if that depends on it",
		NotAsked: "needs a restart of the machine",
	},
	{
		ID:       "Q-events",
		Question: "Events 1 to 4 appear in the log Application, with and without a registered source",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-dll-search",
		Question: "WMI works although libraries are loaded from the directory of Windows only: format a volume",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-privileges",
		Question: "`service install`, `service start`, then `whoami /priv` of the process (Process Explorer, tab Security): four privileges and `NT SERVICE\\csi-proxy`, which may need a restart of the machine. Then through the service: create a link, rescan, format by `MSFT_Volume` and `Win32_Volume`, resize, map and unmap a share, connect and disconnect an iSCSI target",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-privileges-none",
		Question: "`sc.exe privs csi-proxy \"\"`, and an upgrade that is rolled back on a service without a list: it has all privileges again",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-privileges-peer",
		Question: "Without SeDebugPrivilege, the log names the process and the user of a client in a process-isolated container",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-mitigations",
		Question: "`Get-ProcessMitigation -Id PID` shows what `Restricted the process` says, on 2019, 2022 and 2025, as a service and in a HostProcess container",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-mitigations-com",
		Question: "With them, WMI and iSCSI calls work, `smphost` starts on demand, and formatting succeeds",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-strict-handles",
		Question: "The conformance suite, `make attack` on pipes and a stop under load do not end the daemon with STATUS_INVALID_HANDLE (0xC0000008); as a service without `-log_file` neither",
		NotAsked: "needs the daemon as an installed service",
	},
	{
		ID:       "Q-log-rename",
		Question: "The log file is rotated while a log shipper reads it",
		NotAsked: "needs the daemon and a log shipper",
	},
	{
		ID:       "Q-symlink",
		Question: "`CreateSymlink`, again, and over another link; `IsSymlink` of all of them",
	},
	{
		ID:       "Q-mounted-folder",
		Question: "`IsSymlink` of a mounted folder, and after its disk was detached",
	},
	{
		ID:       "Q-rmdir-link",
		Question: "`Rmdir` of a link and of a mounted folder keeps what is behind it; the mount manager no longer lists the folder",
	},
	{
		ID:       "Q-rmdir-tree",
		Question: "`Rmdir` with force of a tree with links and mounted folders inside",
	},
	{
		ID:       "Q-rmdir-open",
		Question: "`Rmdir` of a file that another process has open, and of a read-only file",
	},
	{
		ID:       "Q-offline-guid",
		Question: "A GPT disk with a mounted volume goes offline: the GUID in the stale folder is that of the partition, so that `csi-proxyctl node` says which disk has it. Also for a volume that was mounted before the disk moved from another node",
	},
	{
		ID:       "Q-share-status",
		Question: "The server of a mapped share is switched off: the status of the mapping after a minute, after an hour, and after a pod has used it. Expected: `ok`, `disconnected` or `unavailable`; `csi-proxyctl node --ask-shares` reports it in any case",
		NotAsked: "needs a server that is switched off",
	},
	{
		ID:       "Q-iscsi-lost",
		Question: "The target of an iSCSI session is switched off: `csi-proxyctl iscsi sessions` says `not-connected`",
		NotAsked: "needs a server that is switched off",
	},
	{
		ID:       "Q-buffers",
		Question: "The buffers in `internal/win/winlayout/testdata` are what Windows returns. The bytes of each answer are in the zip of `csi-proxy-verify`",
	},
	{
		ID:       "Q-hostprocess",
		Question: "`csi-proxy-verify`, and the life of a volume through the daemon, inside a HostProcess container: with containerd 1.6 and 1.7 or later, with and without `volumeMounts`. Control codes, `\\\\.\\MountPointManager`, SetupDi and `CM_Reenumerate_DevNode` come from inside a silo, and relative opens cross bind mounts",
	},
	{
		ID:       "Q-kubelet-link",
		Question: "The kubelet directory is a junction, and then a symbolic link, to another drive: stage, publish, unpublish and unstage a disk and a share",
	},
	{
		ID:       "Q-wmi-restart",
		Question: "`Restart-Service winmgmt -Force` while volumes are formatted and shares mapped: which codes calls get (1722, 1726, 1727, 0x80010007, 0x80010108), and that no caller sees them unless the method was sent",
		NotAsked: "would restart WMI of this machine",
	},
	{
		ID:       "Q-reboot-mounts",
		Question: "Restart with mounted folders: before a driver acts, `mountvol` lists them, files in them can be read, and `UnmountVolume` works",
		NotAsked: "needs a restart of the machine",
	},
	{
		ID:       "Q-go-files",
		Question: "Go's own calls that we use: `os.Rename` over a file that another process has open, and `os.RemoveAll` of a directory with a locked file. Expected: both fail with 5 or 32. The log file and `csi-proxy-sim -state` depend on them",
	},
	{
		ID:       "Q-root-access",
		Question: "`-format-root-access=users-modify` and `-format-label=x`: `icacls` and `Get-Volume` of the new volume show both; a pod that runs as ContainerUser creates a file in the root. `SetVolumeLabel` takes a path by volume id, and listing a new root returns 2, 18 or `System Volume Information`. `csi-proxyctl node` shows root access `users-modify` for it, and `default` for a volume formatted without the flag",
	},
	{
		ID:       "Q-cluster-sizes",
		Question: "`-format-allocation-unit-size` with 512, 65536 and 2097152, by both WMI methods, and which code a wrong size gets",
	},
	{
		ID:       "Q-vhdx",
		Question: "The conformance suite passes on virtual disks: [`csi-proxy-verify`](#real-windows)",
	},
	{
		ID:       "Q-bios-serial",
		Question: "`GetBIOSSerialNumber` equals `(Get-CimInstance Win32_BIOS).SerialNumber` on Azure, Google Compute, AWS, vSphere and a physical machine",
	},
	{
		ID:       "Q-dependents",
		Question: "`EnumDependentServices` lists indirect dependents in an order in which they can be stopped, so that `StopService` with force stops them. If not: three rounds, then `Aborted`",
	},
	{
		ID:       "Q-service-starting",
		Question: "`StopService` of a starting service that accepts no stop yet returns ERROR_INVALID_SERVICE_CONTROL (1052), as the table of `ControlService` says, or ERROR_SERVICE_CANNOT_ACCEPT_CTRL (1061), as its list of codes says. After either, we wait until the service runs, and stop it then",
	},
	{
		ID:       "Q-service-file",
		Question: "The start of a service whose program is missing fails with ERROR_FILE_NOT_FOUND (2) or ERROR_PATH_NOT_FOUND (3), not with ERROR_SERVICE_DOES_NOT_EXIST (1060)",
	},
	{
		ID:       "Q-service-paused",
		Question: "`StartService` of a paused service returns ERROR_SERVICE_ALREADY_RUNNING (1056)",
	},
}
