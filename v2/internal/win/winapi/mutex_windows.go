package winapi

import (
	"runtime"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

//sys	regCreateKeyEx(key windows.Handle, name *uint16, reserved uint32, class *uint16, options uint32, access uint32, attributes *windows.SecurityAttributes, result *windows.Handle, disposition *uint32) (regerrno error) = advapi32.RegCreateKeyExW

// onlyAdministrators also keeps others from opening, and so from taking, a mutex.
const onlyAdministrators = "D:P(A;;GA;;;SY)(A;;GA;;;BA)"

// TryMutex takes a mutex of this machine, or fails with WAIT_TIMEOUT (258). abandoned means that its last owner has ended
// without release. Windows says so only if another process had the mutex open then, or else forgets it. So there is also a
// key of the registry, which lasts until Windows restarts.
//
// A mutex belongs to the thread that took it, so it gets one until release.
// https://learn.microsoft.com/windows/win32/sync/mutex-objects
func TryMutex(name string) (abandoned bool, release func(), err error) {
	taken, wanted, released := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(released)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		mutex, err := takeMutex(`Global\` + name)
		if err != nil {
			taken <- err
			return
		}
		defer func() { _, _ = windows.ReleaseMutex(mutex), windows.CloseHandle(mutex) }()
		mark := `SOFTWARE\` + name
		abandoned, err = createVolatileKey(mark)
		if taken <- err; err != nil {
			return
		}
		<-wanted
		_ = registry.DeleteKey(registry.LOCAL_MACHINE, mark)
	}()
	if err := <-taken; err != nil {
		return false, nil, Error(err)
	}
	return abandoned, func() { close(wanted); <-released }, nil
}

// https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-createmutexexw
func takeMutex(name string) (windows.Handle, error) {
	access, err := attributes(onlyAdministrators)
	if err != nil {
		return 0, err
	}
	p, err := utf16Ptr(name)
	if err != nil {
		return 0, err
	}
	mutex, err := windows.CreateMutexEx(access, p, 0, windows.SYNCHRONIZE|windows.MUTEX_MODIFY_STATE)
	if mutex == 0 {
		return 0, err // otherwise it says that the mutex exists
	}
	event, err := windows.WaitForSingleObject(mutex, 0)
	if err == nil && event != windows.WAIT_OBJECT_0 && event != windows.WAIT_ABANDONED {
		err = winerr.Code(event)
	}
	if err != nil {
		_ = windows.CloseHandle(mutex)
	}
	return mutex, err
}

// https://learn.microsoft.com/windows/win32/api/winreg/nf-winreg-regcreatekeyexw
func createVolatileKey(name string) (existed bool, err error) {
	const volatile, opened = 1, 2 // REG_OPTION_VOLATILE, REG_OPENED_EXISTING_KEY
	p, err := utf16Ptr(name)
	if err != nil {
		return false, err
	}
	var key windows.Handle
	var disposition uint32
	if err := regCreateKeyEx(windows.HKEY_LOCAL_MACHINE, p, 0, nil, volatile, registry.QUERY_VALUE, nil, &key, &disposition); err != nil {
		return false, err
	}
	return disposition == opened, windows.RegCloseKey(key)
}
