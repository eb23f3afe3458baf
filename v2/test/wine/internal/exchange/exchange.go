// Package exchange is how the node server talks to the driver of the rig: the messages of
// test/wine/driver/protocol.h, and on Windows the device they travel through.
package exchange

// Function is what a client does to a device, IRP_MJ_...
type Function uint32

// The functions that the driver hands over.
const (
	Read        Function = 0x03 // IRP_MJ_READ
	Write       Function = 0x04 // IRP_MJ_WRITE
	Flush       Function = 0x09 // IRP_MJ_FLUSH_BUFFERS
	QueryVolume Function = 0x0A // IRP_MJ_QUERY_VOLUME_INFORMATION
	Control     Function = 0x0E // IRP_MJ_DEVICE_CONTROL
)

// Request is what a client asks of a device.
type Request struct {
	ID       uint64 // for the reply
	Device   uint32 // as it was added
	Function Function
	Code     uint32 // the control code, or what of a volume is queried
	Room     int    // for the answer
	Offset   int64  // where to read or write
	Data     []byte
}

// Reply is the answer to a request. Data fits the room.
type Reply struct {
	ID     uint64
	Status uint32 // NTSTATUS
	Data   []byte
}

// Device is a device to be.
type Device struct {
	Number uint32 // in requests to it
	Type   uint32 // FILE_DEVICE_...
	Name   string // \Device\Harddisk7\DR7
	Links  []string
}
