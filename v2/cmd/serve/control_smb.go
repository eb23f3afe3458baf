package serve

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func (c *control) AddServer(_ context.Context, in *controlv1.AddServerRequest) (*controlv1.AddServerResponse, error) {
	return answer[controlv1.AddServerResponse](c.node.Add(winsim.Model{SMBServers: []winsim.SMBServer{{Name: in.Server}}}))
}

func (c *control) StopServer(_ context.Context, in *controlv1.StopServerRequest) (*controlv1.StopServerResponse, error) {
	return answer[controlv1.StopServerResponse](c.node.ChangeSMBServer(in.Server, func(s *winsim.SMBServer) { s.Down = true }))
}

func (c *control) StartServer(_ context.Context, in *controlv1.StartServerRequest) (*controlv1.StartServerResponse, error) {
	return answer[controlv1.StartServerResponse](c.node.ChangeSMBServer(in.Server, func(s *winsim.SMBServer) { s.Down = false }))
}

// change changes a server, unless change returns why not.
func (c *control) change(name string, change func(*winsim.SMBServer) error) error {
	var refused error
	err := c.node.ChangeSMBServer(name, func(s *winsim.SMBServer) { refused = change(s) })
	return cmp.Or(err, refused)
}

func (c *control) AddShare(_ context.Context, in *controlv1.AddShareRequest) (*controlv1.AddShareResponse, error) {
	return answer[controlv1.AddShareResponse](c.change(in.Server, func(s *winsim.SMBServer) error {
		if slices.ContainsFunc(s.Shares, func(share winsim.SMBShare) bool { return winpath.Equal(share.Name, in.Share) }) {
			return winerr.New(winerr.Exists, "add share", `\\`+in.Server+`\`+in.Share, "the server has it; choose another name")
		}
		s.Shares = append(s.Shares, winsim.SMBShare{Name: in.Share})
		return nil
	}))
}

func (c *control) AddAccount(_ context.Context, in *controlv1.AddAccountRequest) (*controlv1.AddAccountResponse, error) {
	const op = "add account"
	return answer[controlv1.AddAccountResponse](c.change(in.Server, func(s *winsim.SMBServer) error {
		if err := checkAccount(op, in.User, in.Password); err != nil {
			return err
		}
		if accountAt(s, in.User) >= 0 {
			return winerr.New(winerr.Exists, op, in.User, "server %s has it; to change its password, use SetPassword", in.Server)
		}
		s.Accounts = append(s.Accounts, winsim.SMBAccount{User: in.User, Password: in.Password})
		return nil
	}))
}

func (c *control) SetPassword(_ context.Context, in *controlv1.SetPasswordRequest) (*controlv1.SetPasswordResponse, error) {
	const op = "set password of"
	return answer[controlv1.SetPasswordResponse](c.change(in.Server, func(s *winsim.SMBServer) error {
		if err := checkAccount(op, in.User, in.Password); err != nil {
			return err
		}
		at := accountAt(s, in.User)
		if at < 0 {
			return winerr.New(winerr.NotFound, op, in.User, "server %s has no such user", in.Server)
		}
		s.Accounts[at].Password = in.Password
		return nil
	}))
}

func accountAt(s *winsim.SMBServer, user string) int {
	return slices.IndexFunc(s.Accounts, func(a winsim.SMBAccount) bool { return winpath.Equal(a.User, user) })
}

// checkAccount refuses names and passwords that no account has. The error does not contain the
// password.
func checkAccount(op, user, password string) error {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch {
	case user == "" || len(user) > maxText || strings.ContainsFunc(user, isControl):
		return winerr.New(winerr.Invalid, op, user, "the name of a user has 1 to %d characters and no control characters", maxText)
	case password == "" || len(password) > maxText || strings.ContainsFunc(password, isControl):
		return winerr.New(winerr.Invalid, op, user, "a password has 1 to %d characters and no control characters", maxText)
	}
	return nil
}

func (c *control) EndSessions(context.Context, *controlv1.EndSessionsRequest) (*controlv1.EndSessionsResponse, error) {
	c.node.EndSMBSessions()
	return &controlv1.EndSessionsResponse{}, nil
}

func (c *control) MakeDirectory(_ context.Context, in *controlv1.MakeDirectoryRequest) (*controlv1.MakeDirectoryResponse, error) {
	path := strings.ReplaceAll(in.Path, "/", `\`)
	if strings.HasPrefix(path, `\\?\`) || strings.HasPrefix(path, `\\.\`) {
		return nil, winerr.New(winerr.Invalid, "create", path, `use a path such as C:\dir or \\server\share\dir`)
	}
	return answer[controlv1.MakeDirectoryResponse](c.node.Mkdir(path))
}
