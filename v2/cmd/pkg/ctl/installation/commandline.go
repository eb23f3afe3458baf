package installation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/logfile"
)

const serviceFlag = "-windows-service"

// defaultFlags are the flags of a new service. They follow the command lines in use.
var defaultFlags = []string{serviceFlag, `-log_file=C:\var\log\csi-proxy\csi-proxy.log`, "-logtostderr=false", "-v=2"}

// split splits the command line of a service into program and flags like Windows: a quoted
// program, or everything up to .exe, or the first word.
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

// join is the inverse of split. It quotes the program, because without quotes Windows tries
// C:\Program.exe for C:\Program Files\csi-proxy.exe.
func join(binary, flags string) string {
	return strings.TrimSpace(`"` + binary + `" ` + flags)
}

// quote joins flags to a command line that CommandLineToArgvW splits again.
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
		for _, c := range []byte(flag) {
			if c == '"' { // double the backslashes before a quote
				b.WriteString(strings.Repeat(`\`, backslashes+1))
			}
			if c == '\\' {
				backslashes++
			} else {
				backslashes = 0
			}
			b.WriteByte(c)
		}
		b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
		quoted[i] = b.String()
	}
	return strings.Join(quoted, " ")
}

// fields splits the flags of a command line like CommandLineToArgvW: quotes group words, a
// backslash escapes a quote, and two quotes within quotes are one.
func fields(line string) []string {
	var words []string
	var word strings.Builder
	begun, quoted := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], `\`))
			begun = true
			if i+n == len(line) || line[i+n] != '"' {
				word.WriteString(line[i : i+n])
				i += n - 1
				continue
			}
			word.WriteString(strings.Repeat(`\`, n/2))
			if i += n - 1; n%2 == 1 {
				word.WriteByte('"')
				i++
			}
		case c == '"' && quoted && i+1 < len(line) && line[i+1] == '"':
			word.WriteByte('"')
			i++
		case c == '"':
			begun, quoted = true, !quoted
		case (c == ' ' || c == '\t') && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// values returns all values of a flag, with one dash or two, in a command line.
func values(command, flag string) []string {
	_, rest := split(command)
	words := fields(rest)
	var found []string
	for i, word := range words {
		name, value, set := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
		switch {
		case name != flag || !strings.HasPrefix(word, "-"):
		case set:
			found = append(found, value)
		case i+1 < len(words):
			found = append(found, words[i+1])
		}
	}
	return found
}

// asService adds serviceFlag if it is missing.
func asService(flags string) string {
	isFlag := func(word string) bool {
		return strings.TrimSuffix(strings.TrimLeft(word, "-"), "=true") == strings.TrimLeft(serviceFlag, "-")
	}
	if slices.ContainsFunc(fields(flags), isFlag) {
		return flags
	}
	return strings.TrimSpace(serviceFlag + " " + flags)
}

// LogFile returns the log file in the command line of a service, or "".
func LogFile(command string) string { return last(command, "log_file") }

// CrashFiles returns where the last crash of the daemon is, and the one before: beside the log file, or that in the
// command line of a service, or else beside its program. It returns nothing if none is known.
func CrashFiles(logFile, command string) []string {
	binary, _ := split(command)
	beside := cmp.Or(logFile, LogFile(command), binary)
	if beside == "" {
		return nil
	}
	files := logfile.CrashFiles(beside)
	return files[:]
}

// MetricsAddress returns the address of the metrics in the command line of a service, or "".
func MetricsAddress(command string) string { return last(command, "metrics-bind-address") }

// Program returns the program in the command line of a service.
func Program(command string) string {
	binary, _ := split(command)
	return binary
}

// PipeSecurityDescriptor returns the security descriptor of the pipes in the command line of
// a service, or "".
func PipeSecurityDescriptor(command string) string { return last(command, "pipe-security-descriptor") }

// last returns the last value of a flag, which counts, or "".
func last(command, flag string) string {
	if found := values(command, flag); len(found) > 0 {
		return found[len(found)-1]
	}
	return ""
}

// WorkingDirs returns the working directories in the command line of a service; kubelet is
// the default of -kubelet-path.
func WorkingDirs(command, kubelet string) []string {
	if given := values(command, "kubelet-path"); len(given) > 0 {
		kubelet = given[len(given)-1]
	}
	return append([]string{kubelet}, values(command, "working-dir")...)
}
