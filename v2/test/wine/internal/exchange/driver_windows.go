package exchange

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"
	"unicode/utf16"
)

const controlDevice = `\\.\WinsimControl`

// The control codes of the driver: FILE_DEVICE_UNKNOWN, METHOD_BUFFERED, FILE_ANY_ACCESS.
const (
	codeAdd      = 0x22<<16 | 0x800<<2
	codeExchange = 0x22<<16 | 0x801<<2
)

// struct request
const (
	requestID       = 0
	requestDevice   = 8
	requestFunction = 12
	requestCode     = 16
	requestRoom     = 20
	requestOffset   = 24
	requestSize     = 32
)

// encode builds a struct reply with the data behind it.
func (r Reply) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, r.ID)
	b = binary.LittleEndian.AppendUint32(b, r.Status)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(b, r.Data...)
}

// largest is how long messages may be: a mebibyte to be written, and what is said about it.
const largest = 1<<20 + requestSize

// Handle is an open device.
type Handle struct{ handle syscall.Handle }

// Open opens a device by its name in \\.\, without asking for any access.
func Open(name string) (Handle, error) {
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return Handle{}, err
	}
	handle, err := syscall.CreateFile(p, 0, syscall.FILE_SHARE_READ|syscall.FILE_SHARE_WRITE, nil, syscall.OPEN_EXISTING, 0, 0)
	if err != nil {
		return Handle{}, fmt.Errorf("open %s: %w", name, err)
	}
	return Handle{handle}, nil
}

// Close closes the device.
func (h Handle) Close() { _ = syscall.CloseHandle(h.handle) }

// Control sends a control code, with room for an answer.
func (h Handle) Control(code uint32, in []byte, room int) ([]byte, error) {
	out := make([]byte, room)
	n, err := h.control(code, in, out)
	return out[:n], err
}

func (h Handle) control(code uint32, in, out []byte) (int, error) {
	var n uint32
	err := syscall.DeviceIoControl(h.handle, code, first(in), uint32(len(in)), first(out), uint32(len(out)), &n, nil)
	return min(int(n), len(out)), err
}

func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// Driver is the driver, which has to be running.
type Driver struct{ Handle }

// OpenDriver opens the driver. When it is closed the devices stay, until the driver is
// stopped.
func OpenDriver() (Driver, error) {
	handle, err := Open(controlDevice)
	return Driver{handle}, err
}

// Add makes a device.
func (d Driver) Add(device Device) error {
	in, err := device.encode()
	if err != nil {
		return err
	}
	if _, err := d.control(codeAdd, in, nil); err != nil {
		return fmt.Errorf("add %s: %w", device.Name, err)
	}
	return nil
}

// Serve answers requests, as many at once as there are workers, until one of them cannot
// reach the driver any more.
func Serve(workers int, answer func(Request) Reply) error {
	failures := make(chan error, workers)
	for range workers {
		go func() { failures <- serve(answer) }()
	}
	return <-failures
}

// serve has a handle of its own: through one handle there is one call at a time.
func serve(answer func(Request) Reply) error {
	driver, err := OpenDriver()
	if err != nil {
		return err
	}
	defer driver.Close()
	out := make([]byte, largest)
	var in []byte
	for {
		n, err := driver.control(codeExchange, in, out)
		if err != nil {
			return fmt.Errorf("wait for requests: %w", err)
		}
		in = answer(decodeRequest(out[:n])).encode()
	}
}

func decodeRequest(b []byte) Request {
	return Request{
		ID:       binary.LittleEndian.Uint64(b[requestID:]),
		Device:   binary.LittleEndian.Uint32(b[requestDevice:]),
		Function: Function(binary.LittleEndian.Uint32(b[requestFunction:])),
		Code:     binary.LittleEndian.Uint32(b[requestCode:]),
		Room:     int(binary.LittleEndian.Uint32(b[requestRoom:])),
		Offset:   int64(binary.LittleEndian.Uint64(b[requestOffset:])),
		Data:     slices.Clone(b[requestSize:]),
	}
}

// encode builds a struct add with the names behind it.
func (d Device) encode() ([]byte, error) {
	b := binary.LittleEndian.AppendUint32(nil, d.Number)
	b = binary.LittleEndian.AppendUint32(b, d.Type)
	for _, name := range append([]string{d.Name}, d.Links...) {
		if name == "" || slices.Contains([]byte(name), 0) {
			return nil, fmt.Errorf("%q is not a name of a device", name)
		}
		for _, unit := range utf16.Encode([]rune(name + "\x00")) {
			b = binary.LittleEndian.AppendUint16(b, unit)
		}
	}
	return b, nil
}
