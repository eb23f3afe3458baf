package mounter_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/mounter"
)

func TestPath(t *testing.T) {
	const want = `C:\var\lib\kubelet\pods\1`
	for _, spelling := range []string{
		want, `/var/lib/kubelet/pods/1`, `\var\lib\kubelet\pods\1`, `c:\var\lib\kubelet\pods\1`, `C:/var/lib\kubelet/pods/1/`,
		`c:\\var\\lib\\kubelet\pods\1\`, `\\?\C:\var\lib\kubelet\pods\1`, `//?/c:/var/lib/kubelet/pods/1`, `\\.\C:\var\lib\kubelet\pods\1`,
	} {
		if got, err := mounter.Path(spelling); got != want || err != nil {
			t.Errorf("Path(%q) is %q, %v; want %q", spelling, got, err, want)
		}
	}
	for _, wrong := range []string{
		"", `var\lib`, `C:var`, `\\server\share`, `//server/share`, `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\x`,
		`\\?\UNC\server\share`, `C:\var\..\Windows`, `C:\.\x`, `1:\x`,
	} {
		if got, err := mounter.Path(wrong); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Path(%q) is %q, %v; want fs.ErrInvalid", wrong, got, err)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add(`\\?\c:/var//lib`)
	f.Fuzz(func(t *testing.T, path string) {
		clean, err := mounter.Path(path)
		if err != nil {
			return
		}
		if again, err := mounter.Path(clean); again != clean || err != nil {
			t.Errorf("Path(%q) is %q, but Path of that is %q, %v", path, clean, again, err)
		}
	})
}
