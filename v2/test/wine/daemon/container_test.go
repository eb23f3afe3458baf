//go:build windows && wine

package daemon

import (
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	kernel32           = windows.NewLazySystemDLL("kernel32.dll")
	ctrlRoutine        = kernel32.NewProc("CtrlRoutine")
	createRemoteThread = kernel32.NewProc("CreateRemoteThread")
)

// consoleEvent delivers a console event in the way in which containerd ends HostProcess
// containers: by a thread in the process that runs CtrlRoutine, which no header file has.
// GenerateConsoleCtrlEvent knows only two of the events.
func (p *process) consoleEvent(event uintptr) {
	p.t.Helper()
	const access = windows.PROCESS_CREATE_THREAD | windows.PROCESS_QUERY_INFORMATION |
		windows.PROCESS_VM_OPERATION | windows.PROCESS_VM_WRITE | windows.PROCESS_VM_READ
	process, err := windows.OpenProcess(access, false, p.pid())
	require.NoError(p.t, err)
	defer windows.CloseHandle(process)
	require.NoError(p.t, ctrlRoutine.Find())
	// Libraries of the system are at the same address in all processes.
	thread, _, err := createRemoteThread.Call(uintptr(process), 0, 0, ctrlRoutine.Addr(), event, 0, 0)
	if thread == 0 {
		p.t.Fatal(err)
	}
	windows.CloseHandle(windows.Handle(thread))
}

// TestContainer_Stop: at the end of its pod the daemon stops as if by Ctrl+C.
func TestContainer_Stop(t *testing.T) {
	for range 2 {
		p := start(t)
		wantWork(t, connect(t), `\container`)
		p.consoleEvent(windows.CTRL_SHUTDOWN_EVENT)
		if code, output := p.exit(); code != 0 {
			t.Errorf("exit code %d and %s", code, oneLine(output))
		}
		wantPipesFree(t)
	}
}
