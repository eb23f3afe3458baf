package winapi

import "unsafe"

//sys	setProcessMitigationPolicy(policy uint32, flags *uint32, size uintptr) (err error) = kernel32.SetProcessMitigationPolicy?
//sys	heapSetInformation(heap uintptr, class uint32, information uintptr, size uintptr) (err error) = kernel32.HeapSetInformation?

// TurnOn restricts this process. All structures of policies are one DWORD of bits.
// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-setprocessmitigationpolicy
// https://learn.microsoft.com/windows/win32/api/heapapi/nf-heapapi-heapsetinformation
func (m Mitigation) TurnOn() error {
	if m.flags == 0 {
		const terminationOnCorruption = 1 // of every heap, so none is named
		return Error(heapSetInformation(0, terminationOnCorruption, 0, 0))
	}
	flags := m.flags
	return Error(setProcessMitigationPolicy(m.policy, &flags, unsafe.Sizeof(flags)))
}
