package api_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	work   = `C:\var\lib\kubelet`
	stage  = work + `\plugins\kubernetes.io\csi\smb.csi.k8s.io\0a1b\globalmount`
	stage2 = work + `\plugins\kubernetes.io\csi\smb.csi.k8s.io\2c3d\globalmount`

	share    = `\\files\data`
	user     = "csi"
	password = "csi-Pa55"
)

// newNode is a node with the shares data and other on the server files, and data on spare.
func newNode(t testing.TB, changes ...func(*winsim.Model)) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	for _, change := range changes {
		change(&model)
	}
	model.SMBServers[0].Shares = append(model.SMBServers[0].Shares, winsim.SMBShare{Name: "More"})
	spare := model.SMBServers[0]
	spare.Name, spare.Aliases = "spare", []string{"10.0.0.7"}
	model.SMBServers = append(model.SMBServers, spare)
	for _, link := range []string{stage, stage2} {
		model.Files = append(model.Files, winsim.File{Path: link[:len(link)-len(`\globalmount`)]})
	}
	node, err := winsim.New(model)
	must(t, err)
	t.Cleanup(func() {
		if open := node.OpenDirectories(); open != 0 {
			t.Errorf("%d directories stay open", open)
		}
	})
	t.Cleanup(node.Reboot) // ends what hangs
	return node
}

// alwaysPersistent makes a restart leave mappings, without their credentials.
func alwaysPersistent(model *winsim.Model) { model.SMBAlwaysPersistent = true }

// limited is a new host, as of a daemon that has just started.
func limited(t testing.TB, node *winsim.Node) smbapi.HostAPI {
	t.Helper()
	host, err := policy.Limit(smbapi.NewOn(node), []string{work})
	must(t, err)
	return bind(klog.NewContext(t.Context(), logr.Discard()), host)
}

func mapTo(host smbapi.HostAPI, remote, local string) error {
	return host.(smbapi.Extended).MapSMBShare(remote, local, user, password)
}

func bind(ctx context.Context, host smbapi.HostAPI) smbapi.HostAPI {
	return host.(smbapi.Extended).WithContext(ctx)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func inject(t testing.TB, node *winsim.Node, f winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := node.Inject(f)
	must(t, err)
	t.Cleanup(injection.Remove)
	return injection
}

func change(t testing.TB, node *winsim.Node, server string, f func(*winsim.SMBServer)) {
	t.Helper()
	must(t, node.ChangeSMBServer(server, f))
}

func wantKind(t testing.TB, what string, err error, kind winerr.Kind, code winerr.Code) {
	t.Helper()
	if err == nil || winerr.KindOf(err) != kind || winerr.CodeOf(err) != code {
		t.Errorf("%s: %v of kind %v, want kind %v and code %d", what, err, winerr.KindOf(err), kind, code)
	}
}

func isMapped(t testing.TB, node *winsim.Node, remote string) bool {
	t.Helper()
	_, err := node.SMBMapping(context.WithoutCancel(t.Context()), remote)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func wantMapped(t testing.TB, node *winsim.Node, remote string, want bool) {
	t.Helper()
	if got := isMapped(t, node, remote); got != want {
		t.Errorf("%s is mapped: %v, want %v", remote, got, want)
	}
}

func wantContent(t testing.TB, node *winsim.Node, path, want string) {
	t.Helper()
	if got, err := node.ReadFile(path); err != nil || got != want {
		t.Errorf("%s has %q, %v, want %q", path, got, err, want)
	}
}

// made is how often a call was made.
func made(node *winsim.Node, call string) int { return node.Calls()[call] }

func many(prefix string, i int) string { return fmt.Sprintf("%s%03d", prefix, i) }
