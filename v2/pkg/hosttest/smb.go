package hosttest

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
)

// SMBNode is a node under test with a server in its network. Leave fields empty that the node
// does not have; the suite skips the cases that need them.
type SMBNode struct {
	// API is the implementation under test. Its errors must match those of io/fs.
	API smb.Interface
	// Root is an existing directory in which the suite may create files.
	Root string

	// Share is an empty, unused share \\server\share. Other is another share of the same
	// server. Username and Password give access to both.
	Share, Other       string
	Username, Password string
	// MissingShare is a share that the server does not have.
	MissingShare string

	// WriteFile and ReadFile access the node's files without the API, and RemoveLink removes a
	// link as Rmdir of package filesystem does.
	WriteFile  func(path, content string) error
	ReadFile   func(path string) (string, error)
	RemoveLink func(path string) error
	// Mapped reports, without the API, whether the node has a mapping of a share, working or
	// not.
	Mapped func(share string) (bool, error)

	// ChangePassword changes the password of Username on the server.
	ChangePassword func(password string) error
	// Reboot restarts the node. API may survive it.
	Reboot func() error
}

// SMB runs the cases of the SMB group. newNode is called once per case.
func SMB(t *testing.T, newNode func(t *testing.T) SMBNode) {
	t.Helper()
	runCases(t, smbCases, func(t *testing.T) (*smbNode, []string) {
		t.Helper()
		n := &smbNode{SMBNode: newNode(t), runner: runner{t}}
		return n, nil
	})
}

// smbNode adds short names for the calls.
type smbNode struct {
	SMBNode
	runner
}

func (n *smbNode) path(name string) string { return strings.TrimSuffix(n.Root, `\`) + `\` + name }

func (n *smbNode) mapAs(user, password, remote, local string) error {
	return errOf(n.API.NewSMBGlobalMapping(n.ctx(), &smb.NewSMBGlobalMappingRequest{
		RemotePath: remote, LocalPath: local, Username: user, Password: password,
	}))
}

func (n *smbNode) mapTo(remote, local string) error {
	return n.mapAs(n.Username, n.Password, remote, local)
}

func (n *smbNode) unmap(remote string) error {
	return errOf(n.API.RemoveSMBGlobalMapping(n.ctx(), &smb.RemoveSMBGlobalMappingRequest{RemotePath: remote}))
}

func (n *smbNode) wantMapped(share string, want bool) {
	n.t.Helper()
	if n.Mapped == nil {
		return
	}
	if got, err := n.Mapped(share); err != nil || got != want {
		n.t.Errorf("%s is mapped: %v, %v, want %v", share, got, err, want)
	}
}

func (n *smbNode) wantContent(path, want string) {
	n.t.Helper()
	if got, err := n.ReadFile(path); err != nil || got != want {
		n.t.Errorf("content of %s = %q, %v, want %q", path, got, err, want)
	}
}

var smbCases = []testCase[*smbNode]{
	{name: "a share's life", run: func(n *smbNode) {
		stage := n.path("stage")
		twice(n.t, "NewSMBGlobalMapping", func() error { return n.mapTo(n.Share, stage) })
		n.must(n.WriteFile(stage+`\file`, "share data"))
		n.wantContent(stage+`\file`, "share data")
		n.must(n.RemoveLink(stage))
		twice(n.t, "RemoveSMBGlobalMapping", func() error { return n.unmap(n.Share) })
		n.wantMapped(n.Share, false)
		n.must(n.mapTo(n.Share, stage))
		n.wantContent(stage+`\file`, "share data")
	}},
	{name: "a mapping without a link", run: func(n *smbNode) {
		twice(n.t, "NewSMBGlobalMapping", func() error { return n.mapTo(n.Share, "") })
		n.wantMapped(n.Share, true)
		twice(n.t, "RemoveSMBGlobalMapping", func() error { return n.unmap(n.Share) })
		n.wantMapped(n.Share, false)
	}},
	{name: "one share in many spellings", run: func(n *smbNode) {
		for i, remote := range []string{n.Share, n.Share + `\`, strings.ToUpper(n.Share), strings.ReplaceAll(n.Share, `\`, "/"), n.Share + "/sub//dir/"} {
			n.must(n.mapTo(remote, n.path(string(rune('a'+i)))))
			n.must(n.WriteFile(n.path("a")+`\sub\dir\file`, "data"))
		}
		n.wantContent(n.path("c")+`\sub\dir\file`, "data")
		n.wantContent(n.path("e")+`\file`, "data")
	}},
	{name: "two volumes on one share", run: func(n *smbNode) {
		one, two := n.path("one"), n.path("two")
		n.must(n.mapTo(n.Share, ""))
		n.must(n.WriteFile(n.Share+`\one\file`, "data"))
		n.must(n.WriteFile(n.Share+`\two\file`, "data"))
		n.must(n.mapTo(n.Share+`\one`, one))
		n.must(n.mapTo(n.Share+`\two`, two))
		n.must(n.RemoveLink(one))
		twice(n.t, "RemoveSMBGlobalMapping of the first", func() error { return n.unmap(n.Share + `\one`) })
		n.wantContent(two+`\file`, "data")
		n.must(n.RemoveLink(two))
		twice(n.t, "RemoveSMBGlobalMapping of the second", func() error { return n.unmap(n.Share + `\two`) })
		n.wantMapped(n.Share, false)
	}},
	{name: "a directory that is not on the share", run: func(n *smbNode) {
		twice(n.t, "NewSMBGlobalMapping", func() error {
			wantError(n.t, "a missing directory", n.mapTo(n.Share+`\missing\dir`, n.path("link")), fs.ErrNotExist)
			return nil
		})
		n.wantMapped(n.Share, false)
		n.must(n.mapTo(n.Share, n.path("link"))) // the path is free
	}},
	{name: "the link is removed after the mapping", run: func(n *smbNode) {
		// The order matters.
		n.must(n.mapTo(n.Share, n.path("stage")))
		twice(n.t, "RemoveSMBGlobalMapping", func() error { return n.unmap(n.Share) })
		n.wantMapped(n.Share, true)
		n.must(n.RemoveLink(n.path("stage")))
		n.must(n.mapTo(n.Other, n.path("other")))
		n.wantMapped(n.Share, false)
		n.wantMapped(n.Other, true)
	}},
	{name: "RemoveSMBGlobalMapping of what is not mapped", run: func(n *smbNode) {
		twice(n.t, "RemoveSMBGlobalMapping", func() error { return n.unmap(n.Share) })
		twice(n.t, "RemoveSMBGlobalMapping of no share", func() error { return n.unmap(n.MissingShare) })
	}},
	{name: "a link never replaces anything", run: func(n *smbNode) {
		n.must(n.WriteFile(n.path("dir")+`\file`, "data"))
		n.must(n.mapTo(n.Other, n.path("other")))
		wantError(n.t, "over a directory", n.mapTo(n.Share, n.path("dir")), fs.ErrExist)
		wantError(n.t, "over a file", n.mapTo(n.Share, n.path("dir")+`\file`), fs.ErrExist)
		wantError(n.t, "over another link", n.mapTo(n.Share, n.path("other")), fs.ErrExist)
		wantError(n.t, "over a link to the share above", n.mapTo(n.Other+`\sub`, n.path("other")), fs.ErrExist)
		n.wantContent(n.path("dir")+`\file`, "data")
		n.wantMapped(n.Share, false)
	}},
	{name: "a link needs a directory", run: func(n *smbNode) {
		wantError(n.t, "below nothing", n.mapTo(n.Share, n.path("missing")+`\link`), fs.ErrNotExist)
		n.wantMapped(n.Share, false)
	}},
	{name: "credentials are checked", run: func(n *smbNode) {
		wantError(n.t, "a wrong password", n.mapAs(n.Username, n.Password+"x", n.Share, n.path("a")), fs.ErrPermission)
		wantError(n.t, "a wrong user", n.mapAs("not-"+n.Username, n.Password, n.Share, n.path("b")), fs.ErrPermission)
		n.wantMapped(n.Share, false)
		n.must(n.mapTo(n.Share, n.path("c")))
	}},
	{name: "a share that the server does not have", run: func(n *smbNode) {
		wantError(n.t, "NewSMBGlobalMapping", n.mapTo(n.MissingShare, n.path("a")), fs.ErrNotExist)
		n.wantMapped(n.MissingShare, false)
	}},
	{name: "malformed requests", run: func(n *smbNode) {
		for _, remote := range []string{"", "server", `\\server`, `C:\x`, `\\?\UNC\server\share`, `\\.\pipe\x`, n.Share + `\..\x`, n.Share + `\a\..`, "\\\\server\\sh\x00are", n.Share + "\nx"} {
			wantError(n.t, "map "+remote, n.mapTo(remote, ""), fs.ErrInvalid)
			wantError(n.t, "unmap "+remote, n.unmap(remote), fs.ErrInvalid)
		}
		for _, local := range []string{"x", `x\y`, `\\server\share`, n.path(`a\..\b`), n.path("NUL"), n.path("a:b")} {
			wantError(n.t, "link at "+local, n.mapTo(n.Share, local), fs.ErrInvalid)
		}
		wantError(n.t, "a user with a line break", n.mapAs("a\nb", n.Password, n.Share, ""), fs.ErrInvalid)
		wantError(n.t, "a long user", n.mapAs(strings.Repeat("u", 1<<10), n.Password, n.Share, ""), fs.ErrInvalid)
		wantError(n.t, "a long password", n.mapAs(n.Username, strings.Repeat("p", 1<<14), n.Share, ""), fs.ErrInvalid)
		wantError(n.t, "a drive of the server", n.mapTo(`\\server\C$`, ""), fs.ErrPermission)
		n.wantMapped(n.Share, false)
	}},
	{name: "a changed password", run: func(n *smbNode) {
		n.need("way to change a password", n.ChangePassword != nil)
		stage := n.path("stage")
		n.must(n.mapTo(n.Share, stage))
		n.must(n.WriteFile(stage+`\file`, "data"))
		for _, password := range []string{`it's "quoted" $(x) %PATH% :\;`, "пароль \U0001F511"} {
			n.must(n.ChangePassword(password))
			wantError(n.t, "the old password", n.mapTo(n.Share, stage), fs.ErrPermission)
			twice(n.t, "the new password", func() error { return n.mapAs(n.Username, password, n.Share, stage) })
			n.wantContent(stage+`\file`, "data")
		}
	}},
	{name: "a restart", run: func(n *smbNode) {
		n.need("way to restart", n.Reboot != nil)
		n.must(n.mapTo(n.Share, n.path("a")))
		n.must(n.mapTo(n.Other, n.path("b")))
		n.must(n.WriteFile(n.path("a")+`\file`, "a"))
		n.must(n.WriteFile(n.path("b")+`\file`, "b"))
		n.must(n.Reboot())
		for _, name := range []string{"a", "b"} {
			if content, err := n.ReadFile(n.path(name) + `\file`); err == nil {
				n.t.Fatalf("after the restart %q can be read, so this case shows nothing", content)
			}
		}
		twice(n.t, "the first share", func() error { return n.mapTo(n.Share, n.path("a")) })
		twice(n.t, "the second share", func() error { return n.mapTo(n.Other, n.path("b")) })
		n.wantContent(n.path("a")+`\file`, "a")
		n.wantContent(n.path("b")+`\file`, "b")
	}},
	{name: "concurrent calls", run: func(n *smbNode) {
		var calls []func() error
		for i := range 16 {
			calls = append(calls,
				func() error { return n.mapTo(n.Share, n.path(string(rune('a'+i/2)))) },
				func() error { return n.unmap(n.Share) })
		}
		n.together("map or unmap", calls...)
		n.must(n.WriteFile(n.path("a")+`\file`, "data"))
		n.wantContent(n.path("h")+`\file`, "data")
	}},
}
