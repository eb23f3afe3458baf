package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPasswordFile reads what editors and PowerShell write.
func TestPasswordFile(t *testing.T) {
	const bom = "\xEF\xBB\xBF"
	for name, test := range map[string]struct{ content, want, problem string }{
		"plain":                  {content: "p\u00e4ss ", want: "p\u00e4ss "},
		"with a line break":      {content: "pass\r\n", want: "pass"},
		"UTF-8 with a mark":      {content: bom + "pass\n", want: "pass"},
		"PowerShell 5.1":         {content: "\xFF\xFEp\x00\xe4\x00s\x00s\x00\r\x00\n\x00", want: "p\u00e4ss"},
		"big endian":             {content: "\xFE\xFF\x00p\x00\xe4\x00s\x00s", want: "p\u00e4ss"},
		"a surrogate pair":       {content: "\xFF\xFE\x3d\xd8\x00\xde", want: "\U0001F600"},
		"empty":                  {content: "", problem: "has no password"},
		"a mark alone":           {content: "\xFF\xFE", problem: "has no password"},
		"a line break alone":     {content: "\r\n", problem: "has no password"},
		"UTF-16 without a mark":  {content: "p\x00a\x00", problem: "has a NUL"},
		"a NUL in UTF-16":        {content: "\xFF\xFEp\x00\x00\x00", problem: "has a NUL"},
		"Latin 1":                {content: "p\xe4ss", problem: "is neither UTF-8 nor UTF-16"},
		"half a unit":            {content: "\xFF\xFEp\x00a", problem: "is neither UTF-8 nor UTF-16"},
		"half a surrogate pair":  {content: "\xFF\xFE\x3d\xd8", problem: "is neither UTF-8 nor UTF-16"},
		"a password and a user":  {content: "pass\nuser\n", problem: "has more than one line"},
		"UTF-8 with a mark, NUL": {content: bom + "a\x00", problem: "has a NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var o options
			err := o.parse([]string{"-dir", `C:\verify`, "-share", `\\a\b`, "-user", "u", "-password-file", file}, &bytes.Buffer{})
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), file) {
					t.Errorf("got %v, want one with %q and the file", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(o.machine.Share.Password.Bytes()); got != test.want {
				t.Errorf("the password is %q, want %q", got, test.want)
			}
		})
	}
}
