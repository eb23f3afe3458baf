package winsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const dataShare = `\\files\data`

// withServers is the default node, whose server has more of everything.
func withServers() winsim.Model {
	model := winsim.Default()
	model.SMBServers[0].Aliases = []string{"10.0.0.5"}
	model.SMBServers[0].Shares = []winsim.SMBShare{
		{Name: "Data", Files: []winsim.File{{Path: `\dir\file`, Content: "data"}, {Path: `\out`, Symlink: `C:\Windows`}, {Path: `\in`, Symlink: `dir`}}},
		{Name: "more"},
	}
	model.SMBServers[0].Accounts = append(model.SMBServers[0].Accounts, winsim.SMBAccount{User: `DOM\me`, Password: "x"})
	return model
}

func asUser(remote, user, password string) win.SMBMappingRequest {
	return win.SMBMappingRequest{Remote: remote, User: user, Password: win.NewSecret(password)}
}

func asCSI(remote string) win.SMBMappingRequest { return asUser(remote, "csi", "csi-Pa55") }

// TestSMB_Access: a share can be opened with a mapping of that share and of that name of its
// server, and not otherwise.
func TestSMB_Access(t *testing.T) {
	node, ctx := newNode(t, withServers()), t.Context()
	open := func(path string, want winerr.Code) {
		t.Helper()
		if _, err := node.FileInfo(ctx, win.Following(path)); winerr.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %d", path, err, want)
		}
	}
	mustAll(t, node.Symlink(`C:\link`, dataShare+`\`))
	open(dataShare, winerr.LogonFailure)
	open(`C:\link\dir`, winerr.LogonFailure)
	open(`\\nowhere\data`, winerr.BadNetPath)
	mustAll(t, node.CreateSMBMapping(ctx, asCSI(dataShare)))
	for path, want := range map[string]winerr.Code{
		dataShare:                  0,
		`\\FILES\DATA\`:            0,
		dataShare + `\dir\file`:    0,
		dataShare + `\DIR\none`:    winerr.FileNotFound,
		dataShare + `\none\x`:      winerr.PathNotFound,
		`C:\link\dir\file`:         0,
		`\\10.0.0.5\data`:          winerr.LogonFailure, // another server to Windows
		`\\files\more`:             winerr.LogonFailure,
		`\\files`:                  winerr.BadPathname,
		`C:\link\out\System32`:     winerr.SymlinkClassDisabled,
		`C:\link\in\file`:          winerr.SymlinkClassDisabled,
		dataShare + `\in`:          winerr.SymlinkClassDisabled,
		`\\files\data\dir\file\x\`: winerr.PathNotFound,
	} {
		open(path, want)
	}
	if _, err := node.Location(ctx, win.Following(`C:\link`)); winerr.CodeOf(err) != winerr.PathNotFound {
		t.Errorf("the volume of a share: %v, want code 3", err)
	}
	mustAll(t, node.WriteFile(`C:\link\new\file`, "more"))
	if got, err := node.ReadFile(dataShare + `\new\file`); err != nil || got != "more" {
		t.Errorf("what was written by the link is %q on the share, %v", got, err)
	}

	dir, err := node.OpenDirectory(ctx, win.Following(dataShare))
	mustAll(t, err)
	defer dir.Close()
	var where string
	node.Observe(func(touch winsim.Touch) { where = touch.Path })
	if _, err := dir.FileInfo(ctx, "dir"); err != nil || where != `\\files\Data\dir` {
		t.Errorf("an open directory: %v, at %s", err, where)
	}
	mustAll(t, node.ChangeSMBServer("10.0.0.5", func(s *winsim.SMBServer) { s.Down = true }))
	if _, err := dir.FileInfo(ctx, "dir"); winerr.CodeOf(err) != winerr.BadNetPath {
		t.Errorf("an open directory of a server that is down: %v", err)
	}
	mustAll(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down, s.Shares = false, s.Shares[1:] }))
	open(dataShare, winerr.BadNetName)
	if _, err := dir.FileInfo(ctx, "dir"); winerr.CodeOf(err) != winerr.BadNetName {
		t.Errorf("an open directory of a share that is gone: %v", err)
	}
}

// TestSMB_Mappings: what Windows says to requests for mappings.
func TestSMB_Mappings(t *testing.T) {
	node, ctx := newNode(t, withServers()), t.Context()
	create := func(request win.SMBMappingRequest, want winerr.Code) {
		t.Helper()
		if err := node.CreateSMBMapping(ctx, request); winerr.CodeOf(err) != want {
			t.Errorf("%s as %s: %v, want code %d", request.Remote, request.User, err, want)
		}
	}
	status := func(remote string, want win.SMBStatus) {
		t.Helper()
		if got, err := node.SMBMapping(ctx, remote); err != nil || got.Status != want {
			t.Errorf("%s: %+v, %v, want status %d", remote, got, err, want)
		}
	}
	create(asUser(dataShare, "csi", "wrong"), winerr.LogonFailure)
	create(asUser(dataShare, "stranger", ""), winerr.LogonFailure)
	create(asUser(dataShare, "me", "x"), winerr.LogonFailure) // the domain is missing
	create(asUser(dataShare, "", ""), winerr.AccessDenied)
	mustAll(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.DomainRequired = true }))
	create(asCSI(dataShare), winerr.NoSuchLogonSession)
	create(asUser(dataShare, "csi@any", "wrong"), winerr.LogonFailure)
	mustAll(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.DomainRequired = false }))
	create(asCSI(`\\files\none`), winerr.BadNetName)
	create(asCSI(`\\nowhere\data`), winerr.BadNetPath)
	create(asUser(dataShare, `ANY\CSI`, "csi-Pa55"), 0)
	create(asCSI(dataShare), winerr.AlreadyAssigned)
	create(asUser(`\\files\more`, `dom\ME`, "x"), winerr.CredentialConflict)
	create(asUser(`\\10.0.0.5\more`, `dom\ME`, "x"), 0)
	status(dataShare, win.SMBOK)
	// A mapping ends with Windows, unless it is persistent.
	node.Reboot()
	if all, err := node.SMBMappings(ctx); err != nil || len(all) != 0 {
		t.Errorf("the mappings are %+v, %v", all, err)
	}
	lasting := asUser(dataShare, `ANY\CSI`, "csi-Pa55")
	lasting.Persistent = true
	create(lasting, 0)
	lasting = asUser(`\\10.0.0.5\more`, `dom\ME`, "x")
	lasting.Persistent = true
	create(lasting, 0)

	// A password that was changed shows only when the share is opened.
	mustAll(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" }))
	status(dataShare, win.SMBOK)
	if _, err := node.FileInfo(ctx, win.Following(dataShare)); winerr.CodeOf(err) != winerr.LogonFailure {
		t.Errorf("with the old password: %v", err)
	}
	for state, code := range map[winsim.SMBAccountState]winerr.Code{
		winsim.SMBAccountLocked: 1909, winsim.SMBAccountDisabled: 1331, winsim.SMBAccountExpired: 1793, winsim.SMBAccountPasswordExpired: 1330, "": 0,
	} {
		mustAll(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[1].State = state }))
		if _, err := node.FileInfo(ctx, win.Following(`\\10.0.0.5\more`)); winerr.CodeOf(err) != code {
			t.Errorf("account %q: %v, want code %d", state, err, code)
		}
	}
	mustAll(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[1].State = "" }))
	node.EndSMBSessions()
	status(`\\10.0.0.5\more`, win.SMBDisconnected)
	mustAll(t, node.WriteFile(`\\10.0.0.5\more\file`, ""))
	status(`\\10.0.0.5\more`, win.SMBOK)

	node.Reboot()
	status(dataShare, win.SMBDisconnected)
	create(asUser(dataShare, "csi", "new"), winerr.CredentialConflict)
	if all, err := node.SMBMappings(ctx); err != nil || len(all) != 2 {
		t.Errorf("the mappings are %+v, %v", all, err)
	}
	mustAll(t, node.RemoveSMBMapping(ctx, dataShare, true))
	if err := node.RemoveSMBMapping(ctx, dataShare, true); winerr.CodeOf(err) != winerr.FileNotFound {
		t.Errorf("removed twice: %v, want code 2", err)
	}
	create(asUser(dataShare, "csi", "new"), 0)

	mustAll(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.NoEncryption = true }))
	private := asUser(`\\files\more`, "csi", "new")
	private.RequirePrivacy = true
	create(private, winerr.NetworkAccessDenied)

	for _, err := range []error{
		node.ChangeSMBServer("nowhere", func(*winsim.SMBServer) {}),
		node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts = append(s.Accounts, s.Accounts[0]) }),
	} {
		if err == nil {
			t.Error("a change that cannot be was made")
		}
	}
}

// TestSMB_Delay: a slow server takes the node's time, not the test's.
func TestSMB_Delay(t *testing.T) {
	model := withServers()
	model.SMBServers[0].Delay = time.Minute
	node, ctx := newNode(t, model), t.Context()
	begin := node.Now()
	mustAll(t, node.CreateSMBMapping(ctx, asCSI(dataShare)))
	_, err := node.FileInfo(ctx, win.Following(dataShare))
	mustAll(t, err)
	if took := node.Now().Sub(begin); took != 2*time.Minute {
		t.Errorf("two calls took %v, want two minutes", took)
	}
}

// TestLoadModel_SMB: mistakes are reported with their line and field.
func TestLoadModel_SMB(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"smbServers:\n  - name: a\\b\n", `line 2: smbServers[0].name: "a\\b" is not the name`},
		{"smbServers:\n  - shares: []\n", `line 2: smbServers[0].name: "" is not`},
		{"smbServers:\n  - name: a\n  - name: A\n", `line 3: smbServers[1].name: "A" is used twice`},
		{"smbServers:\n  - name: a\n    aliases: [b, A]\n", `line 3: smbServers[0].aliases[1]: "A" is used twice`},
		{"smbServers:\n  - name: a\n    aliases: [b@c]\n", `line 3: smbServers[0].aliases[0]: "b@c" is not`},
		{"smbServers:\n  - name: a\n    shares:\n      - name: C$\n", `line 4: smbServers[0].shares[0].name: "C$" is not`},
		{"smbServers:\n  - name: a\n    shares:\n      - name: x\n      - name: X\n", `line 5: smbServers[0].shares[1].name: "X" is used twice`},
		{"smbServers:\n  - name: a\n    shares:\n      - name: x\n        files:\n          - path: a\\..\\b\n", `line 6: smbServers[0].shares[0].files[0].path: `},
		{"smbServers:\n  - name: a\n    accounts:\n      - password: x\n", `line 4: smbServers[0].accounts[0].user: user is missing`},
		{"smbServers:\n  - name: a\n    accounts: [{user: u}, {user: U}]\n", `line 3: smbServers[0].accounts[1].user: "U" is used twice`},
		{"smbServers:\n  - name: a\n    accounts: [{user: u, state: tired}]\n", `smbServers[0].accounts[0].state: "tired" is not one of "locked"`},
		{"smbServers:\n  - name: a\n    port: 445\n", `line 3: smbServers[0].port: unknown field`},
	} {
		_, err := winsim.LoadModel(strings.NewReader(c.yaml), "node.yaml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%v, want %s", c.yaml, err, c.want)
		}
	}
	model, err := winsim.LoadModel(strings.NewReader(`
smbServers:
  - name: nas.example.com
    aliases: [10.1.2.3]
    guest: true
    noEncryption: true
    domainRequired: true
    delay: 20ms
    shares:
      - name: data
        files:
          - {path: 'a\b.txt', content: text}
    accounts:
      - {user: 'DOM\me', password: 'p: "''x', state: locked}
`), "node.yaml")
	mustAll(t, err)
	if got := model.SMBServers[0]; !got.Guest || !got.DomainRequired || got.Delay != 20*time.Millisecond || got.Accounts[0].Password != `p: "'x` || got.Shares[0].Files[0].Content != "text" {
		t.Errorf("the model is %+v", got)
	}
}
