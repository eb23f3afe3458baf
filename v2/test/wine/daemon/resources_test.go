//go:build windows && wine

package daemon

import (
	"os"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var getProcessMemoryInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// memoryCounters is PROCESS_MEMORY_COUNTERS.
// https://learn.microsoft.com/windows/win32/api/psapi/ns-psapi-process_memory_counters
type memoryCounters struct {
	size, pageFaults                         uint32
	peakWorkingSet, workingSet               uintptr
	peakPagedPool, pagedPool                 uintptr
	peakNonPagedPool, nonPagedPool           uintptr
	pagefileUsage, peakPagefileUsage, unused uintptr
}

// systemHandle is SYSTEM_HANDLE_TABLE_ENTRY_INFO_EX, of which a list follows the number of
// its entries. The header files of Windows do not have it.
type systemHandle struct {
	object, process, value uintptr
	access                 uint32
	creator, kind          uint16
	attributes, unused     uint32
}

// handles is how many the process has open, and how many of them are of files and pipes; the
// others are mostly of the threads of Go, which makes some more now and then. It looks at those
// of all processes: Wine's GetProcessHandleCount says 0, and its counter among the facts about
// a process never falls.
// https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntquerysysteminformation
func (p *process) handles() (all, files int) {
	p.t.Helper()
	own, err := os.Open(p.log)
	require.NoError(p.t, err)
	defer own.Close()
	list := make([]uintptr, 1<<20)
	size := uint32(len(list)) * uint32(unsafe.Sizeof(list[0]))
	require.NoError(p.t, windows.NtQuerySystemInformation(windows.SystemExtendedHandleInformation, unsafe.Pointer(&list[0]), size, nil))
	kinds := map[uint16]int{}
	var file uint16
	for _, handle := range unsafe.Slice((*systemHandle)(unsafe.Pointer(&list[2])), list[0]) {
		switch handle.process {
		case uintptr(p.pid()):
			all++
			kinds[handle.kind]++
		case uintptr(os.Getpid()):
			if handle.value == own.Fd() {
				file = handle.kind
			}
		}
	}
	if kinds[file] == 0 {
		p.t.Fatal("the handles of the daemon cannot be counted")
	}
	return all, kinds[file]
}

// resident is how much memory the process has, in KiB.
func (p *process) resident() int {
	p.t.Helper()
	counters := memoryCounters{size: uint32(unsafe.Sizeof(memoryCounters{}) - unsafe.Sizeof(uintptr(0)))}
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_INFORMATION|windows.PROCESS_VM_READ, false, p.pid())
	require.NoError(p.t, err)
	defer windows.CloseHandle(handle)
	if ok, _, err := getProcessMemoryInfo.Call(uintptr(handle), uintptr(unsafe.Pointer(&counters)), uintptr(counters.size)); ok == 0 {
		p.t.Fatal(err)
	}
	return int(counters.workingSet >> 10)
}

// threads is how many the process has.
// https://learn.microsoft.com/windows/win32/api/tlhelp32/nf-tlhelp32-thread32first
func (p *process) threads() (n int) {
	p.t.Helper()
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	require.NoError(p.t, err)
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID == p.pid() {
			n++
		}
	}
	return n
}

// TestResources_Cycles: clients come and go, and leave nothing behind.
func TestResources_Cycles(t *testing.T) {
	daemon := start(t)
	cycle := func(n int) {
		var workers sync.WaitGroup
		const parallel = 8
		for range parallel {
			workers.Go(func() {
				for range n / parallel {
					c, err := fsv1.New(t.Context(), client.WithWait())
					if err != nil {
						t.Error(err)
						return
					}
					if err := ask(t.Context(), c, patiently); err != nil {
						t.Error(err)
					}
					_ = c.Close() // it never fails
				}
			})
		}
		workers.Wait()
	}
	cycle(1000) // until Go has made its threads
	handles, files := daemon.handles()
	memory, began := daemon.resident(), time.Now()
	const cycles = 10_000
	cycle(cycles)
	took := time.Since(began)
	eventually(t, "handles are closed", func() bool {
		allNow, filesNow := daemon.handles()
		return allNow <= handles+200 && filesNow <= files+5
	})
	allNow, filesNow := daemon.handles()
	after := daemon.resident()
	figure(t, "%d cycles of connect, call and disconnect in %.1f s: handles %d before, %d after; of files and pipes %d before, %d after; memory %d KiB before, %d after",
		cycles, took.Seconds(), handles, allNow, files, filesNow, memory, after)
	if after > memory+16<<10 {
		t.Errorf("memory has grown from %d to %d KiB", memory, after)
	}
}

// awaitPipe is quicker than the clients' waiting. It takes what would be the first connection,
// see wantAllServing.
func (p *process) awaitPipe(group string, version apiversion.Version) {
	p.t.Helper()
	p.awaitPath(client.PipePath(group, version))
}

// awaitPath waits until the process has a pipe.
func (p *process) awaitPath(path string) {
	p.t.Helper()
	for deadline := time.After(timeLimit); ; {
		conn, err := winio.DialPipe(path, nil)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-p.done:
			p.t.Fatalf("it has ended without %s:\n%s", path, p.output())
		case <-deadline:
			p.t.Fatalf("it has no %s: %v\n%s", path, err, p.output())
		case <-time.After(time.Millisecond):
		}
	}
}
