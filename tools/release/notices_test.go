package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestNotices: the notices name each module with its version and licence, and have its texts.
func TestNotices(t *testing.T) {
	r := newRelease(t)
	_, foreign := r.contents(t)
	if len(foreign) != 2 {
		t.Errorf("the programs contain %v", foreign)
	}
	text := string(r.notices(foreign))
	for _, want := range []string{
		"CSI Proxy v9.8.7", "  stdlib ", ": BSD-3-Clause\n", "  go.yaml.in/yaml/v3 ", ": Apache-2.0 AND MIT\n",
		"Copyright 2009 The Go Authors", ": NOTICE\n", "Kirill Simonov",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%.2000s", want, text)
		}
	}
}

func TestReadComponent(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	mit, apache := file(mitText), file(string(readFile(t, "../../LICENSE")))

	got, err := readComponent("example.com/m", "v1.0.0", fstest.MapFS{
		"LICENSE.txt": apache, "NOTICE": file("Made in Springfield."), "license.go": file("package m"),
		"internal/taken/COPYING": mit, "testdata/LICENSE": file("All rights reserved."),
	})
	if err != nil || got.license != "Apache-2.0 AND MIT" || len(got.texts) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for want, source := range map[string]fstest.MapFS{
		"has no licence file":     {"NOTICE": file("Made in Springfield."), "README.md": mit},
		"internal/taken/LICENCE:": {"LICENSE": mit, "internal/taken/LICENCE": file(jsonText)},
	} {
		if _, err := readComponent("example.com/m", "v1.0.0", source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// TestFindComponents_OtherSource: only the version that was linked has the right licences.
func TestFindComponents_OtherSource(t *testing.T) {
	r := &release{source: "../.."}
	for _, versions := range []map[string]string{
		{goLibrary: "1.0"},
		{"go.yaml.in/yaml/v3": "v3.0.0", goLibrary: ""},
	} {
		if _, err := r.sourceDirs(t.Context(), versions); err == nil || !strings.Contains(err.Error(), "build them from this source") {
			t.Errorf("%v: %v", versions, err)
		}
	}
}
