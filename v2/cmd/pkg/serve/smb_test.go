package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta2"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var smbVersions = []clientVersion{
	{"v1alpha1", untyped(smbv1alpha1.NewClientWithPipePath)},
	{"v1beta1", untyped(smbv1beta1.NewClientWithPipePath)},
	{"v1beta2", untyped(smbv1beta2.NewClientWithPipePath)},
	{"v1", untyped(smbv1.NewClientWithPipePath)},
}

// newSMBNode is the usual node with a second share on its server.
func newSMBNode(t *testing.T) *winsim.Node {
	t.Helper()
	node := newNode(t)
	err := node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Shares = append(s.Shares, winsim.SMBShare{Name: "More"}) })
	must(t, err)
	return node
}

// TestConformance_SMB runs the suite through every version's own client.
func TestConformance_SMB(t *testing.T) {
	for _, version := range smbVersions {
		t.Run(version.name, func(t *testing.T) {
			hosttest.SMB(t, func(t *testing.T) hosttest.SMBNode {
				t.Helper()
				node := newSMBNode(t)
				api := dialRemote(t, version.newClient, run(t, node, "smb/"+version.name), "smb", version.name)
				return hosttest.SMBNode{
					API:          remoteSMB{api},
					Root:         `C:\var\lib\kubelet\plugins`,
					Share:        `\\files\data`,
					Other:        `\\files\more`,
					Username:     "csi",
					Password:     "csi-Pa55",
					MissingShare: `\\files\none`,
					WriteFile:    node.WriteFile,
					ReadFile:     node.ReadFile,
					RemoveLink:   node.RemoveAll,
					Mapped: func(share string) (bool, error) {
						_, err := node.SMBMapping(t.Context(), share)
						if errors.Is(err, fs.ErrNotExist) {
							return false, nil
						}
						return err == nil, err
					},
					ChangePassword: func(password string) error {
						return node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = password })
					},
					Reboot: func() error {
						node.Reboot()
						return nil
					},
				}
			})
		})
	}
}

// remoteSMB makes the group's Interface of any version's client.
type remoteSMB struct{ remote }

func (r remoteSMB) ask(ctx context.Context, method string, values fields) error {
	out, err := r.call(ctx, method, values)
	if err != nil {
		return fmt.Errorf("%w: %w", standardErrors[status.Code(err)], err)
	}
	if field := findField(out.message, "error"); field != nil && out.message.Has(field) {
		return fmt.Errorf("the error field is set: %q", out.message.Get(field).String())
	}
	return nil
}

func (r remoteSMB) NewSMBGlobalMapping(ctx context.Context, in *smb.NewSMBGlobalMappingRequest) (*smb.NewSMBGlobalMappingResponse, error) {
	return &smb.NewSMBGlobalMappingResponse{}, r.ask(ctx, "NewSmbGlobalMapping", fields{
		"remote_path": in.RemotePath, "local_path": in.LocalPath, "username": in.Username, "password": in.Password,
	})
}

func (r remoteSMB) RemoveSMBGlobalMapping(ctx context.Context, in *smb.RemoveSMBGlobalMappingRequest) (*smb.RemoveSMBGlobalMappingResponse, error) {
	return &smb.RemoveSMBGlobalMappingResponse{}, r.ask(ctx, "RemoveSmbGlobalMapping", fields{"remote_path": in.RemotePath})
}

// TestSMB_Codes: what drivers see of the ways in which a share cannot be had.
func TestSMB_Codes(t *testing.T) {
	const share, link = `\\files\data`, `C:\var\lib\kubelet\plugins\link`
	for _, c := range []struct {
		name    string
		change  func(*winsim.SMBServer)
		privacy bool
		remote  string
		code    codes.Code
		text    []string
	}{
		{"wrong password", func(s *winsim.SMBServer) { s.Accounts[0].Password = "x" }, true, share, codes.PermissionDenied, []string{"1326", "check both", "DOMAIN"}},
		{"user without a domain", func(s *winsim.SMBServer) { s.DomainRequired = true }, true, share, codes.InvalidArgument, []string{"1312", `use DOMAIN\user; any domain works`}},
		{"locked account", func(s *winsim.SMBServer) { s.Accounts[0].State = winsim.SMBAccountLocked }, true, share, codes.PermissionDenied, []string{"1909", "unlock"}},
		{"expired password", func(s *winsim.SMBServer) { s.Accounts[0].State = winsim.SMBAccountPasswordExpired }, true, share, codes.PermissionDenied, []string{"1330"}},
		{"disabled account", func(s *winsim.SMBServer) { s.Accounts[0].State = winsim.SMBAccountDisabled }, true, share, codes.PermissionDenied, []string{"1331"}},
		{"server down", func(s *winsim.SMBServer) { s.Down = true }, true, share, codes.Unavailable, []string{"53", "445"}},
		{"unknown server", func(*winsim.SMBServer) {}, true, `\\nowhere\data`, codes.Unavailable, []string{"53"}},
		{"unknown share", func(*winsim.SMBServer) {}, true, `\\files\none`, codes.NotFound, []string{"67", "DFS"}},
		{"no encryption", func(s *winsim.SMBServer) { s.NoEncryption = true }, true, share, codes.FailedPrecondition, []string{"65", "-require-privacy"}},
		{"no encryption needed", func(s *winsim.SMBServer) { s.NoEncryption = true }, false, share, codes.OK, nil},
		{"doubled separators", func(*winsim.SMBServer) {}, true, `\\\\files\\data`, codes.OK, nil},
		{"a single one in front", func(*winsim.SMBServer) {}, true, `/files/data`, codes.OK, nil},
		{"a device with doubled separators", func(*winsim.SMBServer) {}, true, `\\\\?\\UNC\\files\\data`, codes.InvalidArgument, []string{"device"}},
		{"missing directory", func(*winsim.SMBServer) {}, true, share + `\none`, codes.NotFound, []string{`map share \\files\data: `, `\\files\data\none`, "Windows error 2"}},
		{"administrative share", func(*winsim.SMBServer) {}, true, `\\files\C$`, codes.PermissionDenied, []string{"administrative"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := newSMBNode(t)
			must(t, node.ChangeSMBServer("files", c.change))
			dir := runWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"smb/v1"}, NoPrivacy: !c.privacy}})
			api := dialRemote(t, untyped(smbv1.NewClientWithPipePath), dir, "smb", "v1")
			_, err := api.call(t.Context(), "NewSmbGlobalMapping", fields{"remote_path": c.remote, "local_path": link, "username": "csi", "password": "csi-Pa55"})
			if status.Code(err) != c.code {
				t.Errorf("%v, want the code %v", err, c.code)
			}
			if _, linkErr := node.ReadFile(link); (err == nil) == errors.Is(linkErr, fs.ErrNotExist) {
				t.Errorf("the call ended with %v, and the link: %v", err, linkErr)
			}
			wantMapped(t, node, err == nil)
			for _, part := range c.text {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not mention %s", err, part)
				}
			}
			if err != nil && (strings.Contains(err.Error(), "csi-Pa55") || strings.Contains(err.Error(), "ResourceExists")) {
				t.Errorf("%v shows the password, or looks like a success to democratic-csi", err)
			}
		})
	}
}

// TestSMB_Passwords: a password of any characters arrives as it is, and is seen nowhere else,
// whatever goes wrong and however much is logged.
func TestSMB_Passwords(t *testing.T) {
	logged := captureLog(t)
	var failures strings.Builder
	passwords := []string{`it's "q" $Env:X $(calc) %PATH%`, `a:b\c\\d\:e`, "пароль-\U0001F511-é", " spaced\tout\nlines ", `secret-in-plain-sight`}
	for i, password := range passwords {
		t.Run(fmt.Sprintf("password %d", i), func(t *testing.T) {
			node := newSMBNode(t)
			dir := run(t, node, "smb/v1")
			api := dialRemote(t, untyped(smbv1.NewClientWithPipePath), dir, "smb", "v1")
			request := fields{"remote_path": `\\files\data`, "local_path": `C:\var\lib\kubelet\pods\link`, "username": `AZURE\csi`, "password": password}
			attempt := func() {
				_, err := api.call(t.Context(), "NewSmbGlobalMapping", request)
				if err != nil {
					failures.WriteString(err.Error() + "\n")
				}
			}
			attempt() // the password is wrong
			must(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = password }))
			for _, code := range []uint32{5, 87, 1219, 31} {
				fault, err := node.Inject(winsim.Fault{Call: "CreateSMBMapping", Error: code})
				must(t, err)
				attempt()
				fault.Remove()
			}
			attempt()
			logons := node.SMBLogons("files")
			if len(logons) != 2 || logons[0].Password != password || !logons[0].Refused || logons[1].Password != password || logons[1].User != `AZURE\csi` || logons[1].Refused || !logons[1].Encrypted {
				t.Errorf("the server got %+v, want %q twice", logons, password)
			}
		})
	}
	text := logged() + failures.String()
	if !strings.Contains(text, `\\\\files\\data`) || !strings.Contains(text, `method="CreateSMBMapping"`) || strings.Count(text, "\n") < 10 {
		t.Errorf("this is no log:\n%s", text)
	}
	for _, password := range passwords {
		for _, form := range []string{password, fmt.Sprintf("%q", password), strings.Trim(fmt.Sprintf("%q", password), `"`), fmt.Sprintf("%x", password), strings.TrimSpace(password)} {
			if strings.Contains(text, form) {
				t.Errorf("%q is in the log, or in an error:\n%s", password, text)
			}
		}
	}
}

// smbClients are the connections of csi-driver-smb to a daemon.
type smbClients struct {
	t       *testing.T
	fs, smb remote
}

func newSMBClients(t *testing.T, dir string) smbClients {
	t.Helper()
	return smbClients{
		t,
		dialRemote(t, untyped(fsv1.NewClientWithPipePath), dir, "filesystem", "v1"),
		dialRemote(t, untyped(smbv1.NewClientWithPipePath), dir, "smb", "v1"),
	}
}

func (c smbClients) mapTo(remotePath, local, user, password string) error {
	c.t.Helper()
	_, err := c.smb.call(c.t.Context(), "NewSmbGlobalMapping", fields{
		"remote_path": remotePath, "local_path": local, "username": user, "password": password,
	})
	return err
}

func (c smbClients) must(method string, values fields) {
	c.t.Helper()
	api := c.fs
	if strings.Contains(method, "Smb") {
		api = c.smb
	}
	if _, err := api.call(c.t.Context(), method, values); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// wantMapped checks whether the share of these tests is mapped.
func wantMapped(t *testing.T, node *winsim.Node, want bool) {
	t.Helper()
	const share = `\\files\data`
	_, err := node.SMBMapping(t.Context(), share)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || (err == nil) != want {
		t.Errorf("%s is mapped: %v, want %v", share, err == nil, want)
	}
}

// TestSMB_LastMapping: csi-driver-smb asks for the removal of a mapping and then removes its
// link, also after a restart of the daemon. The last link takes the mapping with it, wherever
// the kubelet's directory is.
func TestSMB_LastMapping(t *testing.T) {
	const kubelet, share = `C:\var\lib\kubelet`, `\\files\data`
	for name, c := range map[string]struct{ workingDir, base string }{
		"usual":    {kubelet, kubelet},
		"linked":   {`C:\kubelet`, `C:\kubelet`},
		"a drive":  {`C:\`, kubelet},
		"junction": {`C:\joined`, `C:\joined`},
	} {
		t.Run(name, func(t *testing.T) {
			node := newSMBNode(t)
			must(t, errors.Join(node.Symlink(`C:\kubelet`, kubelet), node.Junction(`C:\joined`, kubelet)))
			cfg := serve.Config{Config: daemon.Config{APIGroups: []string{"filesystem/v1", "smb/v1"}, WorkingDirs: []string{c.workingDir}, UnsafeWorkingDirs: name == "a drive"}}
			csi := c.base + `\plugins\kubernetes.io\csi\smb.csi.k8s.io`
			var staged []string
			dir, stop := runUntil(t, node, cfg)
			before := newSMBClients(t, dir)
			for _, hash := range []string{"1", "2"} {
				before.must("Mkdir", fields{"path": csi + `\` + hash})
				staged = append(staged, csi+`\`+hash+`\globalmount`)
				must(t, before.mapTo(share, staged[len(staged)-1], "csi", "csi-Pa55"))
			}
			stop()
			after := newSMBClients(t, runWith(t, node, cfg))
			for i, link := range staged {
				after.must("RemoveSmbGlobalMapping", fields{"remote_path": share})
				wantMapped(t, node, true)
				after.must("Rmdir", fields{"path": link, "force": true})
				wantMapped(t, node, i == 0)
			}
		})
	}
}

// TestSMB_LastMapping_Fails: Rmdir succeeds although the mapping cannot be removed, and the next
// call about the server removes it. A link that is replaced also takes its mapping with it.
func TestSMB_LastMapping_Fails(t *testing.T) {
	const link, share = `C:\var\lib\kubelet\plugins\link`, `\\files\data`
	node := newSMBNode(t)
	c := newSMBClients(t, run(t, node, "filesystem/v1", "smb/v1"))
	stage := func(remotePath string) {
		t.Helper()
		must(t, c.mapTo(remotePath, link, "csi", "csi-Pa55"))
	}
	stage(share)
	fault, err := node.Inject(winsim.Fault{Call: "RemoveSMBMapping", Error: 53})
	must(t, err)
	c.must("RemoveSmbGlobalMapping", fields{"remote_path": share})
	c.must("Rmdir", fields{"path": link})
	if wantMapped(t, node, true); fault.Hits() != 1 {
		t.Errorf("the removal was tried %d times", fault.Hits())
	}
	fault.Remove()
	c.must("RemoveSmbGlobalMapping", fields{"remote_path": `\\files\more`})
	wantMapped(t, node, false)

	stage(share)
	c.must("RemoveSmbGlobalMapping", fields{"remote_path": share})
	if err := node.RemoveAll(link); err != nil { // by another process
		t.Fatal(err)
	}
	c.must("CreateSymlink", fields{"source_path": `C:\var\lib\kubelet\pods`, "target_path": link})
	wantMapped(t, node, false)
}

// TestSMB_LastMapping_TreeFails: a Rmdir that fails after it has removed the last link takes the
// mapping whose removal waits for that link with it.
func TestSMB_LastMapping_TreeFails(t *testing.T) {
	const tree, share = `C:\var\lib\kubelet\plugins\tree`, `\\files\data`
	node := newSMBNode(t)
	c := newSMBClients(t, run(t, node, "filesystem/v1", "smb/v1"))
	c.must("Mkdir", fields{"path": tree})
	must(t, c.mapTo(share, tree+`\a-link`, "csi", "csi-Pa55"))
	must(t, node.WriteFile(tree+`\z-file`, ""))
	c.must("RemoveSmbGlobalMapping", fields{"remote_path": share})
	wantMapped(t, node, true)
	if _, err := node.Inject(winsim.Fault{Object: `*z-file`, Error: 32}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.fs.call(t.Context(), "Rmdir", fields{"path": tree, "force": true}); status.Code(err) != codes.Aborted {
		t.Errorf("got %v, want Aborted", err)
	}
	wantMapped(t, node, false)
}

// TestSMB_OtherUser: with -smb-refuse-other-user a volume does not silently get the rights of
// the user that the share is mapped for.
func TestSMB_OtherUser(t *testing.T) {
	const share, first, second, third = `\\files\data`, `C:\var\lib\kubelet\plugins\1`, `C:\var\lib\kubelet\plugins\2`, `C:\var\lib\kubelet\plugins\3`
	for _, refuse := range []bool{false, true} {
		t.Run(fmt.Sprint("refuse ", refuse), func(t *testing.T) {
			node := newSMBNode(t)
			if err := node.ChangeSMBServer("files", func(s *winsim.SMBServer) {
				s.Accounts = append(s.Accounts, winsim.SMBAccount{User: "second", Password: "x"})
			}); err != nil {
				t.Fatal(err)
			}
			cfg := serve.Config{Config: daemon.Config{APIGroups: []string{"filesystem/v1", "smb/v1"}, RefuseOtherUser: refuse}}
			dir, stop := runUntil(t, node, cfg)
			c := newSMBClients(t, dir)
			other := codes.OK
			if refuse {
				other = codes.FailedPrecondition
			}
			want := func(what string, err error, code codes.Code) {
				t.Helper()
				if status.Code(err) != code || code != codes.OK && !strings.Contains(err.Error(), "-smb-refuse-other-user") {
					t.Errorf("refuse %v, %s: %v, want %v", refuse, what, err, code)
				}
			}
			want("first", c.mapTo(share, first, "csi", "csi-Pa55"), codes.OK)
			want("another user", c.mapTo(share, second, "second", "x"), other)
			want("the same user", c.mapTo(share, third, "CSI", "csi-Pa55"), codes.OK)
			stop()
			c = newSMBClients(t, runWith(t, node, cfg))
			want("again, after a restart of the daemon", c.mapTo(share, first, "csi", "csi-Pa55"), codes.OK)
			want("unknown user", c.mapTo(share, second, "second", "x"), other)
			if !refuse {
				return
			}
			c.must("Rmdir", fields{"path": third})
			c.must("Rmdir", fields{"path": first})
			want("no other link", c.mapTo(share, second, "second", "x"), codes.OK)
			if logons := node.SMBLogons("files"); logons[len(logons)-1].User != "second" {
				t.Errorf("the share is mapped for %s", logons[len(logons)-1].User)
			}
		})
	}
}

// TestSMB_Rotation follows "Change the password of a share" in docs/operations.md.
func TestSMB_Rotation(t *testing.T) {
	const share, first, second, third = `\\files\data`, `C:\var\lib\kubelet\plugins\1`, `C:\var\lib\kubelet\plugins\2`, `C:\var\lib\kubelet\plugins\3`
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			node := newSMBNode(t)
			password := func(password string) {
				t.Helper()
				must(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.KeepsSessions, s.Accounts[0].Password = true, password }))
			}
			cfg := serve.Config{Config: daemon.Config{APIGroups: []string{"filesystem/v1", "smb/v1"}}}
			dir, stop := runUntil(t, node, cfg)
			c := newSMBClients(t, dir)
			mapTo := func(link, password string) {
				t.Helper()
				must(t, c.mapTo(share, link, "csi", password))
			}
			works := func(what string, want bool, links ...string) {
				t.Helper()
				for _, link := range links {
					if err := node.WriteFile(link+`\file`, what); (err == nil) != want {
						t.Errorf("%s: write to %s: %v", what, link, err)
					}
				}
			}
			password("csi-Pa55")
			mapTo(first, "csi-Pa55")
			password("new")
			works("the session goes on", true, first)
			mapTo(second, "new")
			works("two pods, one session", true, first, second)
			if restart {
				stop()
				c = newSMBClients(t, runWith(t, node, cfg))
			}
			node.EndSMBSessions()
			works("the session has ended", false, first, second)
			mapTo(third, "new")
			works("the mapping was recreated", true, first, second, third)
			logons := node.SMBLogons("files")
			if last := logons[len(logons)-1]; len(logons) != 2 || last.Password != "new" || last.Refused {
				t.Errorf("the server got %+v", logons)
			}
		})
	}
}
