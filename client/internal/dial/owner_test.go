package dial

import (
	"errors"
	"io/fs"
	"testing"
)

func TestCheckOwner(t *testing.T) {
	name := func(owner string) string {
		if owner == "S-1-5-19" {
			return `NT AUTHORITY\LOCAL SERVICE`
		}
		return ""
	}
	system, option := []string{"S-1-5-18"}, []string{"S-1-5-20"}
	for owner, want := range map[string]string{
		"S-1-5-18":   "",
		"S-1-5-20":   "",
		"S-1-5-19":   `the pipe belongs to NT AUTHORITY\LOCAL SERVICE (S-1-5-19)`,
		"S-1-5-1":    "the pipe belongs to S-1-5-1", // a prefix of a trusted one
		"S-1-5-18-1": "the pipe belongs to S-1-5-18-1",
		"":           "the pipe belongs to ",
	} {
		err := checkOwner("the pipe", owner, name, system, option)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", owner, err)
			}
			continue
		}
		if err == nil || err.Error() != want || !errors.Is(err, ErrUntrustedOwner) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %v, want %s", owner, err, want)
		}
	}
}
