package main

import (
	"path/filepath"
	"strings"
	"testing"
)

const changelog = `# Changelog

## [Unreleased]

- Not yet.

## [2.1.0] - 2026-11-15

### Added

- A page, see [ADR 1](docs/adr/1.md#why) and [Go](https://go.dev/).

## [2.1.0-rc.1] - 2026-11-01

- A candidate.

## 2.0.0

## Where behaviour differs from the original

- Everywhere.
`

func TestNotes(t *testing.T) {
	r := &release{source: t.TempDir()}
	writeFile(t, filepath.Join(r.source, "CHANGELOG.md"), []byte(changelog))
	for _, test := range []struct{ version, home, notes, problem string }{
		{version: "v2.1.0", notes: "### Added\n\n- A page, see [ADR 1](docs/adr/1.md#why) and [Go](https://go.dev/).\n"},
		{
			version: "v2.1.0", home: "https://git.test/o/p",
			notes: "### Added\n\n- A page, see [ADR 1](https://git.test/o/p/blob/v2.1.0/docs/adr/1.md#why) and [Go](https://go.dev/).\n",
		},
		{version: "v2.1.0-rc.1", notes: "- A candidate.\n"},
		{version: "v2.0.0", problem: "says nothing"},
		{version: "v2.1", problem: "no heading"},
		{version: "v3.0.0", problem: "no heading '## [3.0.0] - DATE'"},
	} {
		r.version, r.home = test.version, test.home
		got, err := r.notes()
		if string(got) != test.notes {
			t.Errorf("%s: %q, want %q", test.version, got, test.notes)
		}
		if failed := err != nil; failed != (test.problem != "") || failed && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v, want an error with %q", test.version, err, test.problem)
		}
	}
}
