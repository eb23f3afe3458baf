package local

// The kinds of calls that can hang. What is not of these kinds is answered by a driver or
// by Windows from memory.
const (
	reachFile   kind = "reach a file"          // the volume or server it is on does not answer
	askMounts   kind = "ask the mount manager" // it does one thing at a time, and waits for volumes
	askDisk     kind = "ask a disk"
	changeDisk  kind = "change a disk"
	reachVolume kind = "reach a volume"
	flushVolume kind = "flush a volume" // it takes as long as there is something to write
	scanAdapter kind = "scan an adapter"
)
