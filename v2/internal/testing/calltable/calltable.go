// Package calltable keeps how many calls to Windows an operation makes. The tests of each
// group compare what their operations do on an emulated node with a table in their testdata.
package calltable

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// File is where the table of a package is, seen from its directory.
const File = "testdata/calls.txt"

// Row is an operation and the calls of the seam that it made, by their names.
type Row struct {
	Operation string
	Calls     map[string]int
}

// Total is the number of calls.
func (r Row) Total() (n int) {
	for _, count := range r.Calls {
		n += count
	}
	return n
}

// Names are the calls that were made, in the order of the alphabet, such as
// "DeviceNumber*3 FileSystem".
func (r Row) Names() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.Calls)) {
		if n := r.Calls[name]; n > 1 {
			name = fmt.Sprintf("%s*%d", name, n)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// Format writes a table: on each line the operation, how many calls it made, and which.
func Format(rows []Row) string {
	width := 0
	for _, row := range rows {
		width = max(width, len(row.Operation))
	}
	var b strings.Builder
	for _, row := range rows {
		line := fmt.Sprintf("%-*s%4d %s", width, row.Operation, row.Total(), row.Names())
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Compare fails the test if the table of its package differs; with update it rewrites the table.
// Raising a number there needs a reason.
func Compare(t testing.TB, rows []Row, update bool) {
	t.Helper()
	got := Format(rows)
	if update {
		if err := os.WriteFile(File, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(File)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is intended, run the test with -update.\ngot:\n%swant:\n%s", File, got, want)
	}
}
