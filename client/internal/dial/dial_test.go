package dial

import "testing"

func TestPipeName(t *testing.T) {
	const canonical = `\\.\pipe\csi-proxy-disk-v1`
	tests := []struct{ path, want string }{
		{canonical, canonical},
		{`\\.\\pipe\\csi-proxy-disk-v1`, canonical},
		{`\\\\.\\pipe\\csi-proxy-disk-v1`, canonical},
		{`\\.\pipe\\csi-proxy-disk-v1`, canonical},
		{`\\.\PIPE\Name`, `\\.\PIPE\Name`},
		{`\\.\pipe\with space`, `\\.\pipe\with space`},
		// Not in the \\.\ namespace: left for Windows to judge.
		{`\\server\pipe\\x`, `\\server\pipe\\x`},
		{`\\?\pipe\\x`, `\\?\pipe\\x`},
		{`\.\pipe\x`, `\.\pipe\x`},
		{`C:\\pipe\\x`, `C:\\pipe\\x`},
		{`\\`, `\\`},
		{``, ``},
	}
	for _, test := range tests {
		if got := pipeName(test.path); got != test.want {
			t.Errorf("pipeName(%s) = %s, want %s", test.path, got, test.want)
		}
	}
}

func TestSocketName(t *testing.T) {
	tests := []struct{ path, want string }{
		{"/run/csi-proxy/x.sock", "/run/csi-proxy/x.sock"},
		{"unix:///run/csi-proxy/x.sock", "/run/csi-proxy/x.sock"},
		{"unix://relative/x.sock", "relative/x.sock"},
		{"relative/x.sock", "relative/x.sock"},
		{"/run/unix://x.sock", "/run/unix://x.sock"},
		{"", ""},
	}
	for _, test := range tests {
		if got := socketName(test.path); got != test.want {
			t.Errorf("socketName(%s) = %s, want %s", test.path, got, test.want)
		}
	}
}
