package winapi

// Mitigation is a restriction that a process puts on itself until it ends.
// https://learn.microsoft.com/windows/win32/api/winnt/ne-winnt-process_mitigation_policy
type Mitigation struct {
	Name    string
	Stops   string
	Setting string // as Microsoft's documentation calls it

	policy, flags uint32 // PROCESS_MITIGATION_POLICY and its structure's bits; of the heap none
}

// Mitigations returns those that fit the daemon. It starts no process, and COM starts servers
// through the service DcomLaunch. It loads libraries of Windows only.
func Mitigations() []Mitigation {
	return []Mitigation{
		{"heap termination", "a damaged heap that goes on", "HeapEnableTerminationOnCorruption", 0, 0},
		{"no child processes", "starting a program", "ProcessChildProcessPolicy", 13, 1},
		{"system images only", "libraries from shares, and those that programs with low integrity wrote", "ProcessImageLoadPolicy", 10, 1 | 2 | 4},
		{"no extension points", "libraries that other programs register, such as AppInit DLLs and hooks", "ProcessExtensionPointDisablePolicy", 6, 1},
	}
}

// StrictHandleChecks is not one of Mitigations: one wrong handle of any library in the process, such as an antivirus
// program's, would end the daemon. No real machine has shown yet that none is.
func StrictHandleChecks() Mitigation {
	return Mitigation{"strict handle checks", "use of a handle after it was closed: it ends the process", "ProcessStrictHandleCheckPolicy", 3, 1 | 2}
}
