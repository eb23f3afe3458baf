package kubelet_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
)

const (
	handle = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pod    = "0f9d2c4e-58ab-4c0d-9f8c-3d1f0d4f4a11"
)

var paths = []struct {
	path string
	want kubelet.Path
}{
	{`C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi.example.com\` + handle + `\globalmount`, kubelet.Path{Kind: kubelet.Staging, Driver: "disk.csi.example.com", Handle: handle}},
	{`c:\VAR\lib\Kubelet\Plugins\Kubernetes.IO\CSI\disk.csi.example.com\` + handle + `\GlobalMount\`, kubelet.Path{Kind: kubelet.Staging, Driver: "disk.csi.example.com", Handle: handle}},
	{`D:\k\plugins\kubernetes.io\csi\pv\pvc-1\globalmount`, kubelet.Path{Kind: kubelet.Staging, PV: "pvc-1"}},
	{`D:\k\plugins\kubernetes.io\csi\PV\pvc-1\globalmount`, kubelet.Path{Kind: kubelet.Staging, PV: "pvc-1"}},
	{`C:\var\lib\kubelet\pods\` + pod + `\volumes\kubernetes.io~csi\pvc-1\mount`, kubelet.Path{Kind: kubelet.Pod, PodUID: pod, PV: "pvc-1"}},
	{`C:/var/lib/kubelet/pods/` + pod + `/volumes/kubernetes.io~csi/pvc-1/mount`, kubelet.Path{Kind: kubelet.Pod, PodUID: pod, PV: "pvc-1"}},
	{`\\?\Volume{x}\pods\` + pod + `\volumes\kubernetes.io~csi\pvc-1\mount\dir\file`, kubelet.Path{Kind: kubelet.Pod, PodUID: pod, PV: "pvc-1"}},
	{`C:\var\lib\kubelet\pods\` + pod + `\volume-subpaths\pvc-1\web\0`, kubelet.Path{Kind: kubelet.Subpath, PodUID: pod, PV: "pvc-1", Container: "web"}},
	// A pod cannot pass for another one with files on its volume.
	{
		`C:\k\pods\` + pod + `\volumes\kubernetes.io~csi\pvc-1\mount\pods\second\volumes\kubernetes.io~csi\pvc-2\mount`,
		kubelet.Path{Kind: kubelet.Pod, PodUID: pod, PV: "pvc-1"},
	},
	{`C:\pods\plugins\kubernetes.io\csi\pv\pvc-1\globalmount`, kubelet.Path{Kind: kubelet.Staging, PV: "pvc-1"}},
	{`C:\pods\` + pod + `\volumes\kubernetes.io~csi\plugins\mount`, kubelet.Path{Kind: kubelet.Pod, PodUID: pod, PV: "plugins"}},
	{`C:\var\lib\kubelet\pods\` + pod + `\volumes\kubernetes.io~empty-dir\x\mount`, kubelet.Path{}},
	{`C:\var\lib\kubelet\pods\` + pod + `\volumes\kubernetes.io~csi\pvc-1`, kubelet.Path{}},
	{`C:\var\lib\kubelet\plugins\kubernetes.io\csi\d\` + handle, kubelet.Path{}},
	{`C:\var\lib\kubelet\plugins\smb\data`, kubelet.Path{}},
	{`C:\`, kubelet.Path{}},
	{``, kubelet.Path{}},
}

func TestParse(t *testing.T) {
	for _, c := range paths {
		got, ok := kubelet.Parse(c.path)
		if got != c.want || ok != (c.want.Kind != "") {
			t.Errorf("%s: got %+v, %v, want %+v", c.path, got, ok, c.want)
		}
	}
}

// FuzzParse: what is found is a part of the path, and the case of letters and the working directory
// do not matter.
func FuzzParse(f *testing.F) {
	for _, c := range paths {
		f.Add(c.path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		found, ok := kubelet.Parse(path)
		if ok != (found.Kind != "") {
			t.Fatalf("%q: %+v, %v", path, found, ok)
		}
		for _, part := range []string{found.Driver, found.Handle, found.PV, found.PodUID, found.Container} {
			if strings.ContainsAny(part, `\/`) || !strings.Contains(path, part) {
				t.Errorf("%q: %q is not a directory of it", path, part)
			}
		}
		if moved, _ := kubelet.Parse(`D:\somewhere\` + path); moved != found {
			t.Errorf("%q: %+v, in another directory %+v", path, found, moved)
		}
	})
}
