package question

var hardware = []Question{
	{
		ID:       "Q-location-property",
		Question: "Which drivers have `StorageDeviceLocationProperty`, and is its text ASCII?",
		IfNot:    "UTF-16 is read too; `IOCTL_SCSI_GET_ADDRESS` replaces a text that does not fit the pattern",
		How:      "Compare `ListDiskLocations` with `Get-Disk | Format-List Number, Location` on Azure, Google Compute, AWS and vSphere, with SCSI and NVMe disks",
	},
	{
		ID:       "Q-azure-lun",
		Question: "On Azure's v6 and v7 sizes: which model, vendor and product does `StorageDeviceProperty` report, which LUN does `IOCTL_SCSI_GET_ADDRESS`, and is the last field of the device interface of the tenth data disk `00000a` or `000010`?",
		IfNot:    "A disk in doubt has no LUN, and the Azure driver does not find it",
		How:      "Compare `ListDiskLocations` with `Get-Disk | Format-List Number, FriendlyName, Path` and the LUNs in the portal, with 16 data disks",
		NotAsked: "needs an Azure machine; Q-location-property has what its disks report",
	},
	{
		ID:       "Q-nvme-ids",
		Question: "Which identifiers does page 83 of an NVMe disk have on Azure, Google Compute and AWS, and is the serial number made of the EUI-64 or NGUID?",
		IfNot:    "The EUI-64 and NGUID of `pkg/node` are empty",
		How:      "`csi-proxyctl node -o json`, and `Get-Disk | Format-List Number, SerialNumber, UniqueId, UniqueIdFormat`",
	},
	{
		ID:       "Q-offline-lun",
		Question: "Does the persistent offline flag apply to another disk attached later at the same LUN?",
		IfNot:    "`PartitionDisk` takes every disk online, and repeats it until that holds",
		How:      "Take a data disk offline, swap it for another, run `PartitionDisk`",
		NotAsked: "needs hardware of that kind",
	},
	{
		ID:       "Q-offline-busy",
		Question: "Which code does `IOCTL_DISK_SET_DISK_ATTRIBUTES` return while files of the disk are open? Expected: 5, 32 or 170",
		IfNot:    "A code that does not mean busy ends the call at once instead of after 5 s",
		How:      "`SetDiskState` to offline while a file on a mounted volume is open",
	},
	{
		ID:       "Q-raw-moment",
		Question: "Is a populated disk ever shown as RAW for a moment?",
		IfNot:    "It must be RAW twice, 500 ms apart, with readable sectors at both ends that carry no sign of a table",
		How:      "Attach and detach a disk with data in a loop, and read its layout",
	},
	{
		ID:       "Q-automount-off",
		Question: "With automatic mounting off, does a volume have a name before it is online?",
		IfNot:    "`IOCTL_VOLUME_ONLINE` is also sent to the partition's device",
		How:      "`mountvol /N`, the command above, `mountvol /E`",
		NotAsked: "would change a setting of this machine",
	},
	{
		ID:       "Q-san-policy",
		Question: `With SAN policy "offline shared", does a shared disk arrive offline and read-only?`,
		IfNot:    "as Q-arrival-state",
		How:      "The life of a volume on an iSCSI or Fibre Channel disk",
	},
	{
		ID:       "Q-arrival-data",
		Question: "Does a disk with data that another node used arrive offline and read-only, and does one request clear both?",
		IfNot:    "The disk comes online read-only, and the log says so; `csi-proxyctl disk writable N`",
		How:      `Move a volume between two vSphere, iSCSI or Fibre Channel nodes with SAN policy "offline shared", then write to it`,
	},
	{
		ID:       "Q-collision",
		Question: "Does a clone beside its original stay offline because of its ids until it is writable, and which of the two gets new ids?",
		IfNot:    "It does not come online, and the error names the original",
		How:      "Attach a clone or a restored snapshot after its original, and before it. Compare `Get-Disk | fl Guid, Signature, OfflineReason`",
	},
	{
		ID:       "Q-multipath",
		Question: "What do disks behind MPIO and NVMe multipath, clustered disks and Storage Spaces show: interfaces without a number, one disk or several, which ids?",
		IfNot:    "A disk without a number is not listed",
		How:      "`ListDiskIDs`, `ListDiskLocations` and `csi-proxyctl node` on each",
		NotAsked: "needs hardware of that kind",
	},
	{
		ID:       "Q-system-disk",
		Question: "Do `PartitionDisk`, `SetDiskState` and `FormatVolume` refuse the disk and volume of Windows: one disk, boot files on another disk, Storage Spaces?",
		How:      "On a scratch machine",
		NotAsked: "must not be tried by a program: if the refusal failed, the machine would be lost",
	},
}
