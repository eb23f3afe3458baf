package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine describes the machine that was measured.
func machine() string {
	return fmt.Sprintf("Measured on %s, %s, %d logical CPUs, %s, %s, load %s when the report was written, on %s.",
		field("/proc/cpuinfo", "model name", ":", "an unknown processor"), runtime.GOARCH, runtime.NumCPU(),
		strings.Trim(field("/etc/os-release", "PRETTY_NAME", "=", runtime.GOOS), `"`), runtime.Version(),
		load(), time.Now().UTC().Format(time.DateOnly))
}

// field returns the first value of a key in a file of lines, or the given default.
func field(file, key, separator, otherwise string) string {
	lines, err := os.Open(file)
	if err != nil {
		return otherwise
	}
	defer lines.Close()
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		if name, value, ok := strings.Cut(scanner.Text(), separator); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

// load returns the load of the last minute: figures of a busy machine scatter.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil || len(text) == 0 {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}
