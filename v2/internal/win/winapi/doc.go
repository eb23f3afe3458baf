// Package winapi extends golang.org/x/sys/windows by the calls that it lacks for storage, in
// the form Go programs expect: devices to open, query and close, lists as slices, failures as
// winerr codes. The raw functions stay private, and results never point to memory of Windows.
//
// It works on Windows only. Numbers and decisions about buffers are in portable files, and
// tested on every OS.
package winapi

//go:generate mkwinsyscall -output zsyscall_windows.go device_interface_windows.go device_node_windows.go firmware_windows.go iscsi_windows.go mitigation_windows.go mounted_windows.go mutex_windows.go privilege_windows.go
