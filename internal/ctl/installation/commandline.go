package installation

import (
	"slices"
	"strings"
)

// serviceFlag is the daemon's flag that makes it a service.
const serviceFlag = "-windows-service"

// defaultFlags are those of a new installation. They follow the command lines in use.
var defaultFlags = []string{serviceFlag, `-log_file=C:\var\log\csi-proxy\csi-proxy.log`, "-logtostderr=false", "-v=2"}

// split divides the command line of a service into the program and the rest, as Windows
// does: a program in quotes, or all up to .exe, or the first word.
// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw
func split(command string) (binary, flags string) {
	command = strings.TrimSpace(command)
	if rest, ok := strings.CutPrefix(command, `"`); ok {
		binary, flags, _ = strings.Cut(rest, `"`)
		return binary, strings.TrimSpace(flags)
	}
	end := strings.Index(strings.ToLower(command)+" ", ".exe ")
	if end >= 0 {
		end += len(".exe")
	} else if end = strings.IndexByte(command, ' '); end < 0 {
		end = len(command)
	}
	return command[:end], strings.TrimSpace(command[end:])
}

// join is the inverse of split. The program is always quoted: without quotes Windows tries
// C:\Program.exe for C:\Program Files\csi-proxy.exe.
func join(binary, flags string) string {
	return strings.TrimSpace(`"` + binary + `" ` + flags)
}

// quote writes flags as one command line, in the manner of CommandLineToArgvW.
// https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments
func quote(flags []string) string {
	quoted := make([]string, len(flags))
	for i, flag := range flags {
		quoted[i] = flag
		if flag != "" && !strings.ContainsAny(flag, " \t\"") {
			continue
		}
		var b strings.Builder
		b.WriteByte('"')
		backslashes := 0
		for _, r := range flag {
			if r == '"' { // those in front of a quote count double
				b.WriteString(strings.Repeat(`\`, backslashes+1))
			}
			if r == '\\' {
				backslashes++
			} else {
				backslashes = 0
			}
			b.WriteRune(r)
		}
		b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
		quoted[i] = b.String()
	}
	return strings.Join(quoted, " ")
}

// asService adds the flag without which the daemon does not talk to the service manager.
func asService(flags string) string {
	words := strings.Fields(flags)
	isFlag := func(word string) bool {
		return strings.TrimSuffix(strings.TrimLeft(word, "-"), "=true") == strings.TrimLeft(serviceFlag, "-")
	}
	if slices.ContainsFunc(words, isFlag) {
		return flags
	}
	return strings.TrimSpace(serviceFlag + " " + flags)
}

// LogFile returns the log file that the command line of a service names, or nothing.
func LogFile(command string) string {
	_, flags := split(command)
	words := strings.Fields(flags)
	for i, word := range words {
		name, value, set := strings.Cut(strings.TrimLeft(word, `-"`), "=")
		if name != "log_file" {
			continue
		}
		if !set && i+1 < len(words) {
			value = words[i+1]
		}
		return strings.Trim(value, `"`)
	}
	return ""
}
