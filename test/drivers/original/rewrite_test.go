package original

import (
	"strings"
	"testing"
)

const released = `// Package integrationtests is documented.
package integrationtests

import (
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	"github.com/kubernetes-csi/csi-proxy/pkg/server"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// startServer is documented.
func startServer() {
	// A comment in it.
	server.New(md5.New())
}

// kept stays.
func kept() {
	disk.New(diskapi.New()) // a remark
	exec.Command("os.Stat", fmt.Sprint(os.Getpid(), v1.X, v1beta1.Y))
}
`

const rewritten = `// Package integrationtests is documented.
package integrationtests

import (
	"fmt"
	exec "MACHINE"
	os "MACHINE"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "MACHINE"
)

// kept stays.
func kept() {
	disk.New(diskapi.NewDisk()) // a remark
	exec.Command("os.Stat", fmt.Sprint(os.Getpid(), v1.X, v1beta1.Y))
}
`

func TestRewrite(t *testing.T) {
	got, err := rewrite("a_test.go", []byte(released), []string{"startServer"})
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(rewritten, "MACHINE", machinePackage); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRewrite_Errors(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"not Go":       {"package", "expected"},
		"unknown host": {"package a\n\nimport \"github.com/kubernetes-csi/csi-proxy/v2/pkg/other/hostapi\"\n", "no host"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rewrite("a.go", []byte(test.source), nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
