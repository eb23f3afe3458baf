//go:build unix

package command_test

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// described are the metrics of a daemon, and when it has looked at its node.
type described struct {
	*metrics.Metrics
	first chan struct{}
}

func (d described) Storage(node *extensionv1.Node) {
	d.Metrics.Storage(node)
	select {
	case d.first <- struct{}{}:
	default:
	}
}

// brokenNodes are the nodes that an operator tried, with what all views say of them: severity, text and remedy.
var brokenNodes = map[string]struct {
	disk   winsim.Disk // with a volume that a pod uses
	gone   bool        // the disk is not there
	change func(*winsim.Model)
	kind   string // of the metric
	want   [3]string
}{
	"hung":      {disk: winsim.Disk{Hanging: true}, kind: "no-answer", want: [3]string{"will hurt", "it does not answer: it cannot be read", "look again in a minute: if it is only slow"}},
	"failing":   {disk: winsim.Disk{Health: winsim.DiskPredicts}, kind: "failing-disk", want: [3]string{"will hurt", "Windows says that it is in trouble", "back up what is on it, and move the pods"}},
	"dying":     {disk: winsim.Disk{Dying: true}, kind: "no-answer", want: [3]string{"hurts pods", "Windows error 1117", "it failed once, which may pass"}},
	"offline":   {disk: winsim.Disk{Offline: true}, kind: "offline", want: [3]string{"hurts pods", "offline: 2 paths lead to it", "csi-proxyctl disk online 1"}},
	"read-only": {disk: winsim.Disk{WriteProtected: true}, kind: "read-only", want: [3]string{"will hurt", "read-only: writes fail", "csi-proxyctl disk writable 1"}},
	"dirty":     {disk: ofVolume(winsim.Volume{Damage: winsim.Damage{Dirty: true}}), kind: "dirty", want: [3]string{"will hurt", "it was not unmounted properly", "Repair-Volume -Scan"}},
	"damaged":   {disk: ofVolume(winsim.Volume{Damage: winsim.Damage{Corruption: winsim.Noted}}), kind: "damaged", want: [3]string{"will hurt", "spot fix needed", "stop the pods that use it"}},
	"full":      {disk: ofVolume(winsim.Volume{Used: 2027 * winsim.MiB}), kind: "full", want: [3]string{"hurts pods", "full: ", "remove files from it, or grow its claim"}},
	"RAW":       {disk: ofVolume(winsim.Volume{State: winsim.Raw}), kind: "raw", want: [3]string{"hurts pods", "RAW: no file system", "do not format it"}},
	"locked":    {disk: ofVolume(winsim.Volume{State: winsim.Locked}), kind: "locked", want: [3]string{"hurts pods", "locked by BitLocker", `manage-bde -unlock \\?\Volume{0b0b0b0b-0000-0000-0000-000000000001}\ -RecoveryPassword`}},
	"stale":     {gone: true, kind: "stale-mount", want: [3]string{"hurts pods", "stale: its volume is gone", "attach its disk again"}},
	"session": {gone: true, kind: "dead-session", change: func(m *winsim.Model) {
		m.Files, m.ISCSI.PnPDelay, m.ISCSI.Portals[0].Registered = nil, 0, true
		m.ISCSI.Logins = []winsim.ISCSILogin{{Target: "iqn.2025-01.com.example:open", Portal: "10.0.0.10:3260"}}
	}, want: [3]string{"will hurt", "not connected: Windows tries to connect again", "its portal 10.0.0.10:3260"}},
	"30 shares": {gone: true, change: func(m *winsim.Model) {
		m.Files = nil
		server := winsim.SMBServer{Name: "nas", Down: true, Accounts: []winsim.SMBAccount{{User: "csi", Password: "csi-Pa55"}}}
		for i := range 30 {
			name := fmt.Sprintf("share%d", i+1)
			server.Shares = append(server.Shares, winsim.SMBShare{Name: name, MappedFor: "csi"})
			m.Files = append(m.Files, winsim.File{Path: podPath(i), Symlink: `\\nas\` + name})
		}
		m.SMBServers = []winsim.SMBServer{server}
	}, want: [3]string{"hurts pods", `30 shares of \\nas (share1, share2, share3,`, "check the server and the network"}},
}

func ofVolume(v winsim.Volume) winsim.Disk {
	return winsim.Disk{Partitions: []winsim.Partition{{Volume: &v}}}
}

// TestBrokenNodes: each trouble is one problem, and all views have its severity, its text and its remedy.
func TestBrokenNodes(t *testing.T) {
	t.Parallel() // it waits
	for name, c := range brokenNodes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const id = "0b0b0b0b-0000-0000-0000-000000000001"
			model := winsim.Default()
			model.Disks = model.Disks[:1]
			stage := `C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi.example.com\` + strings.Repeat("0", 64) + `\globalmount`
			model.Files = append(model.Files, winsim.File{Path: stage, Junction: `\\?\Volume{` + id + `}\`}, winsim.File{Path: podPath(1), Symlink: stage})
			if !c.gone {
				c.disk.Size, c.disk.Layout = 2*winsim.GiB, winsim.LayoutGPT
				if len(c.disk.Partitions) == 0 {
					c.disk.Partitions = []winsim.Partition{{Volume: &winsim.Volume{}}}
				}
				c.disk.Partitions[0].Volume.ID = id
				model.Disks = append(model.Disks, c.disk)
			}
			if c.change != nil {
				c.change(&model)
			}
			emulated, err := winsim.New(model)
			require.NoError(t, err)
			t.Cleanup(emulated.Reboot) // it ends what hangs
			if name == "session" {
				require.NoError(t, emulated.SetISCSIPortalDown("10.0.0.10:3260", true))
			}
			dir, m := serve.SocketDir(t), described{metrics.New(metrics.Config{Storage: true}), make(chan struct{}, 1)}
			serve.StartWith(t, emulated, serve.Config{Config: daemon.Config{SocketDir: dir, Storage: m}})
			<-m.first
			show := func(view string) result {
				r := run(context.WithoutCancel(t.Context()), dir, "", strings.Fields(view)...)
				r.out = strings.ReplaceAll(html.UnescapeString(r.out), `\\\\`, `\\`) // of JSON
				return r
			}
			for strings.HasPrefix(name, "30") && !strings.Contains(show("node").out, "hurts pods") { // the server has been asked
				require.NoError(t, t.Context().Err())
			}
			for _, view := range []string{"node", "node --problems --exit-code", "watch --count 1", "doctor", "node -o html", "node -o json"} {
				r := show(view)
				for i, want := range c.want {
					if view == "node -o json" {
						want = strings.NewReplacer("hurts pods", `"hurts"`, "will hurt", `"will-hurt"`, `30 shares of \\nas (share1, share2, share3,`, `"others"`, `\`, `\\`).Replace(want)
						r.out = strings.ReplaceAll(r.out, `\\nas`, `\\\\nas`)
					}
					if i == 2 && view == "node -o json" {
						continue // it has the same, in quotes
					}
					if !strings.Contains(r.out, want) {
						t.Errorf("%s: no %q in\n%.3000s", view, want, r.out)
					}
				}
				if problems := strings.HasSuffix(view, "--exit-code") || view == "doctor"; problems != (r.code == command.ExitProblems) {
					t.Errorf("%s: exit code %d: %s", view, r.code, r.err)
				}
			}
			if name == "30 shares" {
				if r := show("smb list"); strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, "30 shares of") {
					t.Errorf("smb list: one server is not one line: %s", r.err)
				}
			}
			list := show("disk list").out
			silent := c.kind == "no-answer" || name == "session" // Windows calls these disks online
			if strings.Contains(list, "unreadable") != silent || strings.Contains(show("node").out, "unreadable") != silent {
				t.Errorf("a disk is called unreadable, or it does not answer and is not:\n%s%s", list, show("node").out)
			}
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
			severity := map[string]string{"hurts pods": "hurts", "will hurt": "will-hurt"}[c.want[0]]
			if want := fmt.Sprintf("csi_proxy_storage_problems{kind=%q,severity=%q} 1\n", cmp.Or(c.kind, "x"), severity); c.kind != "" && !strings.Contains(w.Body.String(), want) {
				t.Errorf("metrics: no %s in\n%s", want, w.Body)
			}
			if c.kind == "no-answer" && !strings.Contains(w.Body.String(), "csi_proxy_storage_disks{state=\"unknown\"} 1\n") {
				t.Errorf("metrics: they count no disk whose state is unknown:\n%s", w.Body)
			}
		})
	}
}
