package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mitText = `Copyright (c) 2026 Jane Doe

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense,
and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so,
subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN
NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY,
WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

// jsonText is MIT with one more sentence, which makes it another licence.
var jsonText = strings.Replace(mitText, "THE SOFTWARE IS", "The Software shall be used for Good, not Evil.\n\nTHE SOFTWARE IS", 1)

func TestLicensesOf(t *testing.T) {
	goRoot, err := output(t.Context(), ".", "go", "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	apache, bsd := string(readFile(t, "../../LICENSE")), string(readFile(t, filepath.Join(strings.TrimSpace(string(goRoot)), "LICENSE")))
	for name, test := range map[string]struct{ text, want, failure string }{
		"ours":            {text: apache, want: ourLicense},
		"Go's":            {text: bsd, want: "BSD-3-Clause"},
		"MIT":             {text: mitText, want: "MIT"},
		"two":             {text: mitText + apache, want: "Apache-2.0 MIT"},
		"another licence": {text: jsonText, failure: "its licence is JSON"},
		"a hidden clause": {text: mitText + strings.Repeat("You must also send the authors a postcard. ", 20), failure: "begins with"},
		"no licence":      {text: "All rights reserved.", failure: "cover 0%"},
		"empty":           {failure: "cover 0%"},
	} {
		got, err := licensesOf(test.text)
		failure := ""
		if err != nil {
			failure = err.Error()
		}
		if strings.Join(got, " ") != test.want || !strings.Contains(failure, test.failure) || (failure == "") != (test.failure == "") {
			t.Errorf("%s: %q, %v, want %q, %q", name, got, err, test.want, test.failure)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
