package main

import (
	"strings"
	"testing"
)

func TestLicensesOf(t *testing.T) {
	const (
		mit = "Permission is hereby granted, free of charge, to any\nperson obtaining a copy of this software and associated"
		bsd = "Redistribution and use in source and binary forms, with or without\n// modification, are permitted provided that"
	)
	for text, want := range map[string]string{
		"                 Apache License\n           Version 2.0, January 2004\n": "Apache-2.0",
		mit: "MIT",
		bsd: "BSD-2-Clause",
		bsd + "\nmay be used to endorse or promote products derived from\nthis software without specific prior written permission": "BSD-3-Clause",
		mit + "\nLicensed under the Apache License, Version 2.0 (the \"License\")":                                                 "Apache-2.0 AND MIT",
		"Mozilla Public License Version 2.0": "",
		"":                                   "",
	} {
		got, err := licensesOf(text)
		if strings.Join(got, " AND ") != want || (err == nil) != (want != "") {
			t.Errorf("%.40q: %q, %v, want %q", text, got, err, want)
		}
	}
	own, err := licensesOf(string(readFile(t, "../../LICENSE")))
	if err != nil || strings.Join(own, " ") != ourLicense {
		t.Errorf("our own licence is %q, %v", own, err)
	}
}
