package winpath

import (
	"strings"
	"testing"
)

func TestContains(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{kubelet, kubelet, true},
		{kubelet, `C:\VAR\lib\KUBELET\x`, true},
		{kubelet, `C:\var\lib\kubelet-evil`, false},
		{kubelet, `C:\var\lib\kubelet.evil\x`, false},
		{kubelet, `C:\var\lib`, false},
		{kubelet, `D:\var\lib\kubelet\x`, false},
		{`C:\`, `C:\`, true},
		{`C:\`, `C:\x`, true},
		{`C:\`, `D:\x`, false},
		{`C:\x`, `C:\`, false},
		{`C:\Ärger`, `C:\ärger\x`, true},
		{`C:\Ärger`, `C:\ärgern`, false},
		{`C:\Ⱥ`, `C:\ⱥ\x`, true},
		{`C:\KUBELIT`, `C:\kubelıt\x`, false}, // dotless i
		{`C:\𐐀`, `C:\𐐨\x`, false},             // Deseret, beyond 16 bits
		{`C:\Μ`, `C:\µ\x`, false},             // the micro sign
		{`C:\a`, `C:\a＼x`, false},             // only looks like a separator
	} {
		if got := Contains(c.dir, c.path); got != c.want {
			t.Errorf("Contains(%q, %q) = %v, want %v", c.dir, c.path, got, c.want)
		}
	}
}

func BenchmarkContains(b *testing.B) {
	path := strings.ToUpper(kubelet) + `\pods\0f7a9f1e-8c1b-4b8e-8a39-5f3f3a0c0d11`
	b.ReportAllocs()
	for b.Loop() {
		if !Contains(kubelet, path) {
			b.Fatal("not inside")
		}
	}
}
