package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	share    = `\\files\data`
	password = "csi-Pa55"
	staged   = kubelet + `\plugins\kubernetes.io\csi\smb.csi.k8s.io\0a1b\globalmount`
	staged2  = kubelet + `\plugins\kubernetes.io\csi\smb.csi.k8s.io\2c3d\globalmount`
)

// sharesNode is a node with the servers files and spare, and the directories of two volumes.
func sharesNode(t *testing.T) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	model.SMBAlwaysPersistent = true
	model.SMBServers[0].Accounts = append(model.SMBServers[0].Accounts, winsim.SMBAccount{User: "other", Password: password})
	spare := model.SMBServers[0]
	spare.Name, spare.Aliases = "spare", nil
	model.SMBServers = append(model.SMBServers, spare)
	for _, link := range []string{staged, staged2} {
		model.Files = append(model.Files, winsim.File{Path: strings.TrimSuffix(link, `\globalmount`)})
	}
	return newNode(t, model)
}

func mapTo(t *testing.T, host smbapi.HostAPI, remote, local, user string) {
	t.Helper()
	prepare(t, host.(smbapi.Extended).MapSMBShare(remote, local, user, password))
}

// shareTexts are the shares in lines, with "?" for what is unknown.
func shareTexts(t *testing.T, i *wholenode.Node, parts ...wholenode.Part) string {
	t.Helper()
	found, err := i.Describe(t.Context(), parts...)
	if err != nil || !found.SharesListed || len(found.Problems) != 0 {
		t.Fatalf("%v, listed %v, problems %q", err, found.SharesListed, found.Problems)
	}
	lines := make([]string, len(found.Shares))
	for i, s := range found.Shares {
		links := make([]string, len(s.Links))
		for i, link := range s.Links {
			links[i] = strings.TrimSuffix(strings.TrimPrefix(link, kubelet+`\plugins\kubernetes.io\csi\smb.csi.k8s.io\`), `\globalmount`)
		}
		lines[i] = fmt.Sprintf("%s %s user %s private %s answers %s links %v removal waits %s%s", s.Remote, s.Status,
			show(s.User), show(s.Private), show(s.Answers), links, show(s.RemovalWaits), strings.TrimSuffix(problemText(s.Problems), "\n"))
	}
	return strings.Join(lines, "\n")
}

func wantShares(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestShares: a mapping with two links, from its creation to its end.
func TestShares(t *testing.T) {
	node := sharesNode(t)
	host := smbapi.NewOn(node)
	i := newOn(t, node, wholenode.WorkingDirs(kubelet), wholenode.SMBHost(host))
	mapTo(t, host, share, staged, "csi")
	mapTo(t, host, share, staged2, "csi")
	all := []wholenode.Part{wholenode.Links, wholenode.Shares}
	wantShares(t, "two links", shareTexts(t, i, all...), `\\files\data ok user csi private true answers ? links [0a1b 2c3d] removal waits false`)
	wantShares(t, "links not searched", shareTexts(t, i, wholenode.Shares), `\\files\data ok user csi private true answers ? links [0a1b 2c3d] removal waits false`)

	mapTo(t, host, share, staged2, "other")
	wantShares(t, "another user, of which nothing is used", shareTexts(t, i, all...), `\\files\data ok user csi private true answers ? links [0a1b 2c3d] removal waits false`)

	prepare(t, host.RemoveSMBGlobalMapping(share))
	prepare(t, node.RemoveAll(staged))
	for name, parts := range map[string][]wholenode.Part{"searched": all, "not searched": {wholenode.Shares}} {
		wantShares(t, "a removal waits for one link, "+name, shareTexts(t, i, parts...), `\\files\data ok user csi private true answers ? links [2c3d] removal waits true`)
	}

	restarted := smbapi.NewOn(node)
	fresh := newOn(t, node, wholenode.WorkingDirs(kubelet), wholenode.SMBHost(restarted))
	wantShares(t, "after a restart of the process", shareTexts(t, fresh, all...), `\\files\data ok user ? private true answers ? links [2c3d] removal waits false`)
	wantShares(t, "after a restart, links not searched", shareTexts(t, fresh, wholenode.Shares), `\\files\data ok user ? private true answers ? links [] removal waits false`)
	wantShares(t, "without the host", shareTexts(t, inspector(t, node), all...), `\\files\data ok user ? private true answers ? links [2c3d] removal waits ?`)

	prepare(t, node.RemoveAll(staged2))
	host.(smbapi.Extended).LinksGone(staged2)
	wantShares(t, "after the last link", shareTexts(t, i, all...), "")
}

// TestShares_Privacy: Windows reports it also of the mapping of another process.
func TestShares_Privacy(t *testing.T) {
	node := sharesNode(t)
	host := smbapi.NewOn(node)
	mapTo(t, host.(smbapi.Extended).WithPrivacy(false), share, "", "csi")
	mapTo(t, host, `\\spare\data`, "", "csi")
	const want = `\\files\data ok user %[1]s private false answers ? links [] removal waits %[2]s
\\spare\data ok user %[1]s private true answers ? links [] removal waits %[2]s`
	wantShares(t, "ours", shareTexts(t, newOn(t, node, wholenode.SMBHost(host)), wholenode.Shares), fmt.Sprintf(want, "csi", "false"))
	wantShares(t, "of another process", shareTexts(t, newOn(t, node), wholenode.Shares), fmt.Sprintf(want, "?", "?"))
	silent := silentPrivacy{node}
	got := shareTexts(t, newOn(t, silent), wholenode.Shares)
	wantShares(t, "Windows says nothing", got, strings.NewReplacer("private true", "private ?", "private false", "private ?").Replace(fmt.Sprintf(want, "?", "?")))
	got = shareTexts(t, newOn(t, silent, wholenode.SMBHost(host)), wholenode.Shares)
	wantShares(t, "Windows says nothing about ours", got, fmt.Sprintf(want, "csi", "false"))
}

// silentPrivacy is a machine that does not report whether mappings require encryption.
type silentPrivacy struct{ *winsim.Node }

func (m silentPrivacy) SMBMappings(ctx context.Context) ([]win.SMBMapping, error) {
	mappings, err := m.Node.SMBMappings(ctx)
	for i := range mappings {
		mappings[i].Plain, mappings[i].Private = false, false
	}
	return mappings, err
}

// TestShares_Answers: the status alone says little.
func TestShares_Answers(t *testing.T) {
	node := sharesNode(t)
	host := smbapi.NewOn(node)
	i := newOn(t, node, wholenode.SMBHost(host))
	mapTo(t, host, share, "", "csi")
	check := func(what, want string) {
		t.Helper()
		wantShares(t, what, shareTexts(t, i, wholenode.ShareAnswers), fmt.Sprintf(`\\files\data %s links [] removal waits false`, want))
	}
	change := func(f func(*winsim.SMBServer)) {
		t.Helper()
		prepare(t, node.ChangeSMBServer("files", f))
	}
	check("healthy", "ok user csi private true answers true")

	node.EndSMBSessions()
	check("idle: Windows connects it again", "ok user csi private true answers true")

	denied, err := node.Inject(winsim.Fault{Call: "FileInfo", Error: 5})
	if err != nil {
		t.Fatal(err)
	}
	check("the account cannot list it", "ok user csi private true answers true")
	denied.Remove()

	change(func(s *winsim.SMBServer) { s.Down = true })
	down := shareTexts(t, i, wholenode.ShareAnswers)
	if !strings.Contains(down, "disconnected user csi private true answers false") || !strings.Contains(down, "! ") || !strings.Contains(down, "(Windows error 53)") {
		t.Errorf("a dead server: %s", down)
	}
	change(func(s *winsim.SMBServer) { s.Down = false })
	change(func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" })
	node.EndSMBSessions()
	if changed := shareTexts(t, i, wholenode.ShareAnswers); !strings.Contains(changed, "answers false") || !strings.Contains(changed, "(Windows error ") {
		t.Errorf("a changed password: %s", changed)
	}
}

// ownAccount is a machine on which the shares of disconnected mappings open for other reasons.
type ownAccount struct{ *winsim.Node }

func (m ownAccount) FileInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	if strings.HasPrefix(path.Base, `\\files`) {
		return win.FileInfo{Directory: true}, nil
	}
	return m.Node.FileInfo(ctx, path)
}

func TestShares_OwnAccount(t *testing.T) {
	node := sharesNode(t)
	mapTo(t, smbapi.NewOn(node), share, "", "csi")
	node.Reboot()
	got := shareTexts(t, newOn(t, ownAccount{node}), wholenode.ShareAnswers)
	if !strings.Contains(got, "disconnected user ? private true answers false") || !strings.Contains(got, "the mapping stays disconnected") {
		t.Error(got)
	}
}

// TestShares_Hang: a server that hangs costs its own answers, and file servers are asked only on
// request.
func TestShares_Hang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := sharesNode(t)
		host := smbapi.NewOn(node)
		mapTo(t, host, share, "", "csi")
		mapTo(t, host, `\\spare\data`, "", "csi")
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: `\\files*`, Delay: time.Hour})
		i := newOn(t, node, wholenode.SMBHost(host))
		begin := time.Now()
		wantShares(t, "asked", shareTexts(t, i, wholenode.ShareAnswers), `\\files\data ok user csi private true answers ? links [] removal waits false ! no answer in time
\\spare\data ok user csi private true answers true links [] removal waits false`)
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("it took %s", took)
		}
		node.ResetCalls()
		begin = time.Now()
		wantShares(t, "not asked", shareTexts(t, i, wholenode.Shares), `\\files\data ok user csi private true answers ? links [] removal waits false
\\spare\data ok user csi private true answers ? links [] removal waits false`)
		if took, calls := time.Since(begin), node.Calls(); took != 0 || calls["FileInfo"] != 0 || calls["SMBMappings"] != 1 {
			t.Errorf("it took %s and the calls %v", took, calls)
		}
	})
}

// TestShares_Secrets: the password is in no description.
func TestShares_Secrets(t *testing.T) {
	node := sharesNode(t)
	host := smbapi.NewOn(node)
	mapTo(t, host, share, staged, "csi")
	i := newOn(t, node, wholenode.WorkingDirs(kubelet), wholenode.SMBHost(host))
	found, err := i.Describe(t.Context(), wholenode.Links, wholenode.ShareAnswers)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(found)
	if err != nil || !strings.Contains(string(text), `"csi"`) || strings.Contains(string(text), password) {
		t.Errorf("%v, %s", err, text)
	}
	facts := fmt.Sprintf("%+v", host.(smbapi.Extended).MappingFacts(share))
	if !strings.Contains(facts, "csi") || strings.Contains(facts, password) {
		t.Error(facts)
	}
}
