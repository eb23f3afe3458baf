package utils

import (
	"os"
	"os/exec"
)

// RunPowershellCmd runs a script and returns what it prints, on both streams. envs are variables
// such as "path=C:\x", which the script reads as $Env:path. Pass every value this way: a value
// in the text of the script is code.
//
// Deprecated: no other package of this project starts a process. Use the groups of the library.
func RunPowershellCmd(command string, envs ...string) ([]byte, error) {
	// Progress bars would be part of the output.
	script := "$global:ProgressPreference = 'SilentlyContinue'; " + command
	cmd := exec.Command("powershell", "-Mta", "-NoProfile", "-Command", script) //nolint:gosec,noctx // the published function runs the caller's script, without a context
	cmd.Env = append(os.Environ(), envs...)
	return cmd.CombinedOutput()
}
