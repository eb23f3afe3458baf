package daemon

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const podLink = kubeletDir + `\pods\00000000-0000-4000-a000-%012d\volumes\kubernetes.io~csi\pv-%d\mount`

// shareNode is a node with 30 shares of a server that a pod each uses, and a daemon that looks at it.
type shareNode struct {
	*winsim.Node
	*storage
	t    *testing.T
	look func(context.Context) (*node.Description, error)
	m    *metrics.Metrics
	smb  smbapi.HostAPI
	stop func()
}

func newShareNode(t *testing.T, more ...winsim.File) *shareNode {
	t.Helper()
	model := winsim.Default()
	model.Files = append(model.Files, more...)
	server := winsim.SMBServer{Name: "nas", KeepsSessions: true, Accounts: []winsim.SMBAccount{{User: "csi", Password: "csi-Pa55"}}}
	for i := range 30 {
		name := fmt.Sprintf("share%d", i+1)
		server.Shares = append(server.Shares, winsim.SMBShare{Name: name, MappedFor: "csi"})
		model.Files = append(model.Files, winsim.File{Path: fmt.Sprintf(podLink, i+1, i+1), Symlink: `\\nas\` + name})
	}
	server.Shares = append(server.Shares, winsim.SMBShare{Name: "unused", MappedFor: "csi"})
	model.SMBServers = append(model.SMBServers, server)
	emulated, err := winsim.New(model)
	require.NoError(t, err)
	t.Cleanup(emulated.Reboot) // it ends what a fault holds
	n := &shareNode{Node: emulated, t: t, m: metrics.New(metrics.Config{Storage: true}), smb: smbapi.NewOn(emulated)}
	machine, err := node.NewOn(emulated, node.WorkingDirs(kubeletDir), node.SMBHost(n.smb))
	require.NoError(t, err)
	n.look = func(ctx context.Context) (*node.Description, error) {
		return machine.Describe(ctx, node.Links, node.Shares)
	}
	n.storage = &storage{observer: n.m, healer: &healer{Node: machine}}
	n.servers.open = machine.OpenShares
	n.stop = background(t, func(ctx context.Context) { n.describe(ctx, n.look) })
	return n
}

// problems are those that csi-proxyctl gets, without the time of waiting for anything.
func (n *shareNode) problems() (found []problem.Problem) {
	n.t.Helper()
	began := time.Now()
	description, err := n.look(n.t.Context())
	require.NoError(n.t, err)
	sent := grpcapi.WireNode(description)
	n.annotate(sent)
	if took := time.Since(began); took != 0 {
		n.t.Errorf("a look waited %v for a file server", took)
	}
	return problem.Find(sent)
}

// expect compares what is wrong with how many shares, and how often a share was opened since the last time.
func (n *shareNode) expect(when, want string, opened int) {
	n.t.Helper()
	of := map[string]int{}
	for _, p := range n.problems() {
		of[string(p.Severity)+" "+p.Text] += 1 + len(p.Others)
	}
	text := ""
	for p, count := range of {
		text += fmt.Sprintf("%d %s", count, p)
	}
	if text != want {
		n.t.Errorf("%s: %q, want %q", when, text, want)
	}
	if got := n.Calls()["FileInfo"]; got != opened {
		n.t.Errorf("%s: %d shares were opened, want %d", when, got, opened)
	}
	n.ResetCalls()
}

func (n *shareNode) change(f func(*winsim.SMBServer)) {
	n.t.Helper()
	require.NoError(n.t, n.ChangeSMBServer("nas", f))
}

// TestServers: each minute one share of a server is opened, and what that shows is true of all its shares that pods use:
// of every view the same, and at once.
func TestServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShareNode(t)
		time.Sleep(time.Minute + time.Second)
		n.expect("well", "", 2)
		n.change(func(s *winsim.SMBServer) { s.Down = true })
		time.Sleep(2 * time.Minute)
		n.expect("down", "30 hurts it does not open: the server cannot be reached (Windows error 53)", 2)
		n.change(func(s *winsim.SMBServer) { s.Down = false })
		time.Sleep(2 * time.Minute)
		n.expect("up again", "", 2)
		n.change(func(s *winsim.SMBServer) { s.Down = true })
		time.Sleep(2 * time.Minute)
		// The alert has this scrape in its test.
		if text := scrape(t, n.m); !strings.Contains(text, "csi_proxy_storage_pods_hurt 30\n") || !strings.Contains(text, `csi_proxy_storage_problems{kind="dead-share",severity="hurts"} 1`+"\n") {
			t.Error(text)
		}
		n.stop()
	})
}

// TestServers_Account: a server that has refused the account is asked again only when a mapping has changed, and one
// that denies a look at a share about its other shares.
func TestServers_Account(t *testing.T) {
	quiet := 2 * time.Hour // for one of them, which all treat alike
	for _, code := range []uint32{86, 1326, 1330, 1331, 1907, 1909} {
		synctest.Test(t, func(t *testing.T) {
			n := newShareNode(t)
			refused, err := n.Inject(winsim.Fault{Call: "FileInfo", Object: `\\nas\*`, Error: code})
			require.NoError(t, err)
			time.Sleep(10 * time.Minute)
			n.ResetCalls()
			time.Sleep(quiet)
			quiet = 10 * time.Minute
			found := n.problems()
			if len(found) != 1 || len(found[0].Pods) != 30 || found[0].Severity != problem.Hurts || !strings.Contains(found[0].Advice, "smb map SHARE --user") {
				t.Errorf("%d: %+v", code, found)
			}
			if got := n.Calls()["FileInfo"]; got != 0 {
				t.Errorf("%d: the account was tried %d times more", code, got)
			}
			refused.Remove()
			require.NoError(t, n.smb.(smbapi.Extended).MapSMBShare(`\\nas\share7`, "", "csi", "csi-Pa55"))
			time.Sleep(2 * time.Minute)
			if found := n.problems(); len(found) != 0 {
				t.Errorf("%d, mapped again: %+v", code, found)
			}
			n.stop()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := newShareNode(t)
		denied, err := n.Inject(winsim.Fault{Call: "FileInfo", Object: `\\nas\share1`, Error: 5})
		require.NoError(t, err)
		time.Sleep(10*time.Minute + time.Second)
		n.expect("one share denies a look", "", 11)
		denied.Remove()
		n.change(func(s *winsim.SMBServer) { s.Down = true })
		time.Sleep(2 * time.Minute)
		n.expect("down", "30 hurts it does not open: the server cannot be reached (Windows error 53)", 2)
		n.stop()
	})
}

// TestServers_Slow: a server that does not answer is slow, and hurts no pod, until two questions agree. A share that is
// not there says nothing about the others.
func TestServers_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShareNode(t)
		time.Sleep(30 * time.Second)
		n.ResetCalls()
		slow, err := n.Inject(winsim.Fault{Call: "FileInfo", Object: `\\nas\*`, Delay: time.Hour})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		n.expect("one question", "30 will-hurt it does not answer: no answer in time", 1)
		slow.Remove()
		n.Reboot()
		n.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		n := newShareNode(t)
		_, err := n.Inject(winsim.Fault{Call: "FileInfo", Object: `\\nas\*`, Delay: time.Hour})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		n.expect("two questions", "30 hurts it does not answer: no answer in time", 2)
		began := time.Now()
		require.NoError(t, n.smb.(smbapi.Extended).MapSMBShare(`\\files\data`, "", "csi", "csi-Pa55"))
		if took := time.Since(began); took != 0 {
			t.Errorf("a driver waited %v", took)
		}
		n.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		n := newShareNode(t)
		_, err := n.Inject(winsim.Fault{Call: "FileInfo", Object: `\\nas\share1`, Error: 67})
		require.NoError(t, err)
		time.Sleep(2*time.Minute + time.Second)
		n.expect("one share is gone", "1 hurts it does not open: the server has no such share (Windows error 67)", 3)
		n.stop()
	})
}

// TestServers_Shares: what one share of a server shows, the others of it do not, and each is opened in turn.
func TestServers_Shares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShareNode(t)
		_, err := n.Inject(winsim.Fault{Call: "FileInfo", Object: `\\nas\share9`, Error: 67})
		require.NoError(t, err)
		slow, err := n.Inject(winsim.Fault{Call: "FileInfo", Object: `\\nas\share7`, Delay: 24 * time.Hour})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		want := map[string]string{`\\nas\share7`: "it does not answer: no answer in time", `\\nas\share9`: "it does not open: the server has no such share (Windows error 67)"}
		for _, p := range n.problems() {
			if want[p.Object.ID] != p.Text && !strings.HasPrefix(p.Text, want[p.Object.ID][:18]) || p.Severity != problem.Hurts || len(p.Others) > 0 {
				t.Errorf("%+v", p)
			}
			delete(want, p.Object.ID)
		}
		if len(want) > 0 {
			t.Errorf("not found: %v", want)
		}
		slow.Remove()
		n.Reboot()
		n.stop()
	})
}

// TestServers_Disconnected: Windows' own word for a mapping counts also while the last question says that it opened.
func TestServers_Disconnected(t *testing.T) {
	s := servers{known: map[string]*fileServer{serverOf(`\\nas\a`): {last: `\\nas\a`, shares: map[string]*fileShare{`\\nas\a`: {opened: true}}}}}
	for status, want := range map[string]bool{"ok": true, "disconnected": false} {
		share := &extensionv1.Share{Remote: `\\nas\a`, Status: status, Links: []string{"a pod's"}}
		s.annotate(&extensionv1.Node{Shares: []*extensionv1.Share{share}})
		if share.GetAnswers() != want {
			t.Errorf("%s: %v", status, share)
		}
	}
}

// TestServers_RefusedOnce: no look of the daemon tries an account again that a server has refused: not when pods of its
// shares come and go, nor for what is stale.
func TestServers_RefusedOnce(t *testing.T) {
	stage := func(i int) string {
		return fmt.Sprintf(kubeletDir+`\plugins\kubernetes.io\csi\smb.csi.k8s.io\%064x\globalmount`, i)
	}
	files := []winsim.File{{Path: stage(99), Junction: `\\?\Volume{00000000-0000-0000-0000-000000000077}\`}} // which is gone
	for i := range 30 {
		files = append(files, winsim.File{Path: stage(i + 1), Symlink: fmt.Sprintf(`\\nas\share%d`, i+1)})
	}
	synctest.Test(t, func(t *testing.T) {
		n := newShareNode(t, files...)
		time.Sleep(90 * time.Second)
		n.change(func(s *winsim.SMBServer) { s.Accounts[0].Password = "other" })
		n.EndSMBSessions()
		n.ResetCalls()
		for i := range 60 {
			if i%2 == 0 {
				require.NoError(t, n.RemoveAll(stage(5)))
				require.NoError(t, n.RemoveAll(fmt.Sprintf(podLink, 5, 5)))
			} else {
				require.NoError(t, n.Symlink(stage(5), `\\nas\share5`))
			}
			time.Sleep(time.Minute)
		}
		n.stop()
		ctx, cancel := context.WithCancel(t.Context())
		go healAtStart(ctx, n.healer, HealAfterRestart)
		time.Sleep(2 * time.Hour)
		cancel()
		synctest.Wait()
		if opened := n.Calls()["FileInfo"]; opened != 1 {
			t.Errorf("the account was tried %d times in three hours, want once", opened)
		}
		found, err := n.healer.Heal(t.Context(), node.HealOptions{}) // a person asks
		require.NoError(t, err)
		if opened := n.Calls()["FileInfo"]; len(found.Stale) != 31 || opened != 2 {
			t.Errorf("heal found %d and tried the account %d times, want once", len(found.Stale), opened-1)
		}
	})
}

// TestServers_RefusedFlaps: an idle session that ends does not make its mapping a new one, for which the account is tried again.
func TestServers_RefusedFlaps(t *testing.T) {
	refusal := &node.Problem{Kind: node.Failure, WindowsCode: 1326}
	s := &fileServer{shares: map[string]*fileShare{}}
	share := node.Share{Remote: `\\nas\a`, Status: "ok", Links: []string{"a pod's"}}
	asked := 0
	look := func(status string, changes uint64) {
		share.Status, share.Changes = status, changes
		if s.next([]node.Share{share}) != nil {
			asked++
			s.learn(time.Time{}, share.Remote, refusal)
		}
	}
	for range 5 {
		look("ok", 1)
		look("disconnected", 1)
		look("disconnected", 1)
	}
	if asked != 5 { // once, and when it worked again
		t.Errorf("asked %d times while the session ended four times", asked)
	}
	asked = 0
	for range 5 {
		look("disconnected", 1)
	}
	if look("disconnected", 2); asked != 1 {
		t.Errorf("asked %d times after the share was mapped again", asked)
	}
}
