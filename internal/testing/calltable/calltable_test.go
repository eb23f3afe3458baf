package calltable_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
)

var rows = []calltable.Row{
	{Operation: "PathExists", Calls: map[string]int{"FileInfo": 1}},
	{Operation: "Rmdir of a link, 2 deep", Calls: map[string]int{"Remove": 12, "OpenDirectory": 1}},
	{Operation: "nothing", Calls: map[string]int{}},
}

const table = `PathExists                1 FileInfo
Rmdir of a link, 2 deep  13 OpenDirectory Remove*12
nothing                   0
`

func TestFormat(t *testing.T) {
	if diff := cmp.Diff(table, calltable.Format(rows)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	got, err := calltable.Parse(table)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"":                           "line 1 is not",
		"PathExists  1 FileInfo\nno": "line 2 is not",
		"PathExists  2 FileInfo":     "add up to 1, not to 2",
		"PathExists  1 FileInfo*x":   `"FileInfo*x" is not a call`,
	} {
		if _, err := calltable.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
