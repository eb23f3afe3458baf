// Package winapi extends golang.org/x/sys/windows by the calls that it lacks for storage, in
// the form Go programs expect: devices that are opened, asked and closed, lists as slices,
// failures as winerr codes. The raw functions stay private, and nothing that is returned
// lies in memory of the system.
//
// All of it works on Windows only, except for what can be checked elsewhere: numbers, and
// decisions about buffers.
package winapi

//go:generate mkwinsyscall -output zsyscall_windows.go device_interface_windows.go device_node_windows.go firmware_windows.go iscsi_windows.go privilege_windows.go
