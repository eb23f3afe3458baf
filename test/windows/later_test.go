package windows_test

import "testing"

// TestLater has the questions that no program can ask yet. To ask one, make a test of it under the same ID. Answers by
// hand are welcome.
func TestLater(t *testing.T) {
	for _, q := range later {
		t.Run(q.id, func(t *testing.T) { skip(t, q.id, q.needs+"; "+q.text) })
	}
}

// later are the questions with what they need.
var later = []struct{ id, needs, text string }{
	// About the daemon.
	{"Q-pipe-users", "needs sessions of other users",
		"An administrator connects from an elevated prompt; an ordinary user, and an administrator from a prompt " +
			"that is not elevated, get 5."},
	{"Q-pipe-container", "needs a process-isolated container",
		"ContainerAdministrator of a process-isolated container connects; ContainerUser is refused."},
	{"Q-pipe-peer", "needs a process-isolated container",
		"The daemon names the process and the user of a client in a process-isolated container, of one in a " +
			"HostProcess container, and of a protected process: csi_proxy_connections, and the line of a request at " +
			"-v=2. Expected: the pid is the one on the node, the name that of the program in the container."},
	{"Q-second-daemon", "needs two daemons; TestPipe_ListenSecondIsRefused shows a part",
		"A second daemon ends with exit code 3 and names the first, also when another user runs it."},
	{"Q-service-tests", "needs Go, and installs the daemon",
		"CSI_PROXY_TEST_SERVICE=1 go test ./cmd/csi-proxy passes, as an administrator."},
	{"Q-pipe-owner", "needs a HostProcess container",
		"In one whose runAsUserName is a local group: who owns the pipes of a daemon in it? Expected: Administrators. " +
			"If not: the client module refuses them. Q-hostprocess measures the owner of the token."},
	{"Q-preshutdown", "needs a restart of the machine",
		"At shutdown the service gets Preshutdown and waits for a call; with the kubelet's graceful node shutdown " +
			"it gets it after the kubelet, if that depends on it."},
	{"Q-events", "needs the daemon as an installed service",
		"Events 1 to 4 appear in the log Application, with and without a registered source."},
	{"Q-privileges-none", "needs the daemon as an installed service",
		"sc.exe privs csi-proxy \"\", and an upgrade that is rolled back on a service without a list: it has all " +
			"privileges again."},
	{"Q-privileges-peer", "needs the daemon as an installed service",
		"Without SeDebugPrivilege, the log names the process and the user of a client in a process-isolated " +
			"container."},
	{"Q-log-rename", "needs the daemon and a log shipper",
		"The log file is rotated while a log shipper reads it."},
	{"Q-share-status", "needs a server that is switched off",
		"The server of a mapped share is switched off: the status of the mapping after a minute, after an hour, " +
			"and after a pod has used it. Expected: ok, disconnected or unavailable; csi-proxyctl node --ask-shares " +
			"reports it in any case."},
	{"Q-iscsi-lost", "needs a server that is switched off",
		"The target of an iSCSI session is switched off: csi-proxyctl iscsi sessions says not-connected."},
	{"Q-wmi-restart", "would restart WMI of this machine",
		"Restart-Service winmgmt -Force while volumes are formatted and shares mapped: which codes calls get " +
			"(1722, 1726, 1727, 0x80010007, 0x80010108), and that no caller sees them unless the method was sent."},

	// About paths and links.
	{"Q-glance", "the seam does not show which way an answer came; run the tests of internal/win/local",
		"Does NtQueryAttributesFile with OBJ_DONT_REPARSE find names below the open root of a drive, fail with " +
			"4395 at a link on the way, and refuse a whole path because of its drive letter? Expected: yes, as " +
			"NtCreateFile does. If not: If it follows links, PathExists tells what exists behind them; if whole paths " +
			"are accepted, they are asked for; after any other failure the file is opened. To see it: TestGlance, " +
			"TestGlance_FromHandles, TestGlance_Links."},
	{"Q-other-tags", "needs a directory of a cloud provider or of a container layer",
		"Does it also fail at directories with other tags (cloud storage, container layers)? Expected: either. If " +
			"not: Such a directory is refused, or entered. To see it: a path through one."},
	{"Q-bind-mounts", "needs a HostProcess container with volumeMounts; Q-hostprocess says whether this is a container",
		"In a HostProcess container with volumeMounts: do relative opens fail with 87 at times, and with 4395 " +
			"where no link exists? Expected: 87 at times (github.com/microsoft/Windows-Containers/issues/635); 4395 is " +
			"a guess. If not: 87 is repeated three times; 4395 fails and names the directory. To see it: Concurrent " +
			"PathExists and Mkdir below and across a mount."},
	{"Q-stale-kubelet", "needs a cluster",
		"In which of these cases does the kubelet of each release fail to create the directory? Expected: in all. " +
			"If not: node heal is of less use. To see it: The same, with a pod; kubectl describe pod."},
	{"Q-fat-tag", "needs a FAT volume; the program formats with NTFS only",
		"Does FAT refuse FileAttributeTagInfo with 87? Expected: yes; the attributes alone are asked. If not: " +
			"Every call on a FAT volume fails. To see it: PathExists on one."},

	// About hardware.
	{"Q-azure-lun", "needs an Azure machine; Q-location-property has what its disks report",
		"On Azure's v6 and v7 sizes: which model, vendor and product does StorageDeviceProperty report, which LUN " +
			"does IOCTL_SCSI_GET_ADDRESS, and is the last field of the device interface of the tenth data disk 00000a " +
			"or 000010? If not: A disk in doubt has no LUN, and the Azure driver does not find it. To see it: Compare " +
			"ListDiskLocations with Get-Disk | Format-List Number, FriendlyName, Path and the LUNs in the portal, with " +
			"16 data disks."},
	{"Q-automount-off", "would change a setting of this machine",
		"With automatic mounting off, does a volume have a name before it is online? If not: IOCTL_VOLUME_ONLINE " +
			"is also sent to the partition's device. To see it: mountvol /N, the command above, mountvol /E."},
	{"Q-multipath", "needs hardware of that kind",
		"What do disks behind MPIO and NVMe multipath, clustered disks and Storage Spaces show: interfaces without " +
			"a number, one disk or several, which ids? If not: A disk without a number is not listed. To see it: " +
			"ListDiskIDs, ListDiskLocations and csi-proxyctl node on each."},
	{"Q-system-disk", "must not be tried by a program: if the refusal failed, the machine would be lost",
		"Do PartitionDisk, SetDiskState and FormatVolume refuse the disk and volume of Windows: one disk, boot " +
			"files on another disk, Storage Spaces? To see it: On a scratch machine."},

	// About iSCSI.
	{"Q-iscsi-sizes", "needs a target with more than 20 LUNs",
		"Do session lists, device lists and stored logins say which size they need? Try more than 20 LUNs on one " +
			"target. Expected: 122, 0x8007007a or 0xefff0054, with the size. If not: The buffer is doubled, five " +
			"times."},
	{"Q-iscsi-session-name", "needs a login, which attaches disks that the program did not make",
		"Which of the two names of a session is the target's? If not: Both are compared."},
	{"Q-iscsi-nat", "needs a target behind a translated address",
		"Which addresses do targets have that were discovered at a floating or translated address? Expected: those " +
			"that the server reports; DiscoverTargetPortal does not list them. If not: Other calls do not look at " +
			"addresses."},
	{"Q-iscsi-case", "needs a login, which attaches disks that the program did not make",
		"Does LoginIScsiTargetW ignore the case of names? Expected: yes. If not: After 0xefff0029 the login is " +
			"repeated with the name that Windows lists."},
	{"Q-iscsi-chap-codes", "needs a target with CHAP",
		"Which codes do wrong credentials cause, and CHAP to a target without CHAP? Expected: those of kind Denied " +
			"in internal/win/winerr/iscsi.go. If not: Another code, with its number."},
	{"Q-iscsi-secret-size", "would replace the CHAP secret of this machine",
		"Does SetIScsiInitiatorCHAPSharedSecret accept 12 to 16 bytes? Expected: yes."},
	{"Q-iscsi-pnp", "needs a login, which attaches disks that the program did not make",
		"What do devices show while Plug and Play is at work? Expected: number 0xffffffff, an empty legacy name, " +
			"0xefff0040, or an empty list. If not: A disk number may be returned a moment before the disk can be " +
			"opened."},
	{"Q-iscsi-rescan", "needs a login, which attaches disks that the program did not make",
		"Does rescanning ROOT\\ISCSIPRT\\0000 help a late disk? Expected: yes. If not: It arrives by itself, or the " +
			"call fails after 30 s and can be repeated."},
	{"Q-iscsi-logout-busy", "needs a login, which attaches disks that the program did not make",
		"Which code does LogoutIScsiTarget return while a volume is mounted and a file open? Expected: 0xefff0040 " +
			"or 0xefff001f. If not: A code that does not mean busy ends the call at once."},
	{"Q-iscsi-logout-gone", "needs a server that is switched off",
		"How long does LogoutIScsiTarget take when the target is gone? If not: The caller leaves at its deadline; " +
			"the logout continues for up to 5 minutes."},

	// About SMB.
	{"Q-smb-idle", "takes 20 minutes of idling",
		"Does an idle mapping show status 2, and 0 again after an open? Expected: yes. If not: Each " +
			"NewSmbGlobalMapping recreates it. To see it: Leave a mapping alone for 20 minutes."},
	{"Q-smb-unencrypted", "needs a server without encryption",
		"Which code does a server without encryption cause? Expected: 65, as one user reports. If not: The error " +
			"has the number, but does not name -require-privacy. To see it: Samba with smb encrypt = off."},
	{"Q-smb-user", "needs a HostProcess container with a staged volume",
		"Does Windows tell for whom a mapping was created, also to LocalSystem? Expected: no class of global " +
			"mappings does. If not: If MSFT_SmbConnection does, the user can be shown after a restart of the daemon. " +
			"To see it: Get-SmbConnection | fl * in a HostProcess container after a volume is staged."},
	{"Q-smb-reconnect", "needs a server that is switched off",
		"Does Windows reconnect by itself after 64 or 59? Expected: yes, at the next open. If not: Mappings in use " +
			"are recreated after a minute. To see it: Restart the server."},
	{"Q-smb-2025", "needs servers with other defaults",
		"What do the defaults of Server 2025 change: signing required, guests refused, NTLM blocked? Expected: " +
			"1272 for a guest; otherwise as before. If not: An error with its number and no advice. To see it: Map " +
			"shares of Samba and of an older server, with and without a user."},
	{"Q-smb-dfs", "needs a DFS namespace",
		"What does a DFS namespace return? Expected: 67 or 1232, whose errors say so. To see it: Map one."},
	{"Q-smb-guest", "needs the log of the server",
		"Whom does the server see without Credential? Expected: a guest, or the node's account in a domain. To see " +
			"it: Map without a user name; read the server's log."},
	{"Q-smb-container", "needs a pod",
		"Does a container follow the link to the share? Expected: yes, the mapping is for all sessions. To see it: " +
			"A pod with a share."},
}
