package local

// The kinds of calls that can hang: all that open a device, a volume or a file, ask Windows
// about them, or reach for a target, and those that another process answers.
const (
	reachFile   kind = "reach a file" // the volume it is on does not answer
	reachServer kind = "reach a server"
	askMounts   kind = "ask the mount manager" // it does one thing at a time, and waits for volumes
	listDevices kind = "list devices"          // Windows is adding or removing one
	askDriver   kind = "ask a driver"          // the same, and the driver is stuck
	askDisk     kind = "ask a disk"            // the driver may remember the answer, or ask the disk
	readDevice  kind = "read a disk or volume"
	changeDisk  kind = "change a disk"
	reachVolume kind = "reach a volume"
	flushVolume kind = "flush a volume" // it takes as long as there is something to write
	scanAdapter kind = "scan an adapter"

	askInitiator   kind = "ask the iSCSI initiator" // it does one thing at a time
	askPortal      kind = "ask an iSCSI portal"     // the server does not answer
	loginTarget    kind = "log in to an iSCSI target"
	logoutTarget   kind = "log out of an iSCSI target" // programs have its disks open
	askServices    kind = "ask the service manager"    // it is busy with the list of services
	controlService kind = "control a service"          // and it waits for the service
)
