package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
)

func (a *app) simServer() *cobra.Command {
	return a.group(page{
		use:     "server",
		short:   "Add, stop and start SMB servers in the node's network",
		long:    "Add, stop and start SMB servers in the node's network.",
		example: "  csi-proxyctl sim server stop files",
	},
		a.simple(simple{page: page{
			use:     "add SERVER",
			short:   "Add a server without shares and users",
			long:    "SERVER is a host name or address.",
			example: `  csi-proxyctl sim server add srv.example`,
		}, method: "sim/AddServer", object: "server {1}", done: "added"}),
		a.simple(simple{page: page{
			use:     "stop SERVER",
			short:   "Make a server unreachable",
			long:    "Make a server unreachable (StopServer): accesses fail with ERROR_BAD_NETPATH (53). Does nothing if it is down.",
			example: `  csi-proxyctl sim server stop files`,
		}, method: "sim/StopServer", object: "server {1}", done: "stopped"}),
		a.simple(simple{page: page{
			use:     "start SERVER",
			short:   "Make a stopped server reachable again",
			long:    "Does nothing if it is up.",
			example: `  csi-proxyctl sim server start files`,
		}, method: "sim/StartServer", object: "server {1}", done: "started"}),
	)
}

func (a *app) simShare() *cobra.Command {
	return a.group(page{
		use:     "share",
		short:   "Add shares to SMB servers",
		long:    "Add shares to SMB servers in the node's network.",
		example: `  csi-proxyctl sim share add '\\files\backup'`,
	},
		a.leaf(page{
			use:     "add SHARE",
			short:   "Add an empty share to a server",
			long:    `Add an empty share to a server (AddShare). SHARE is \\server\share.`,
			example: `  csi-proxyctl sim share add '\\files\backup'`,
		}, 1, func(ctx context.Context, s *session, args []string) error {
			server, share, ok := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(args[0], "/", `\`), `\\`), `\`)
			if !ok {
				return usagef(`invalid share %q; write it as '\\server\share'`, args[0])
			}
			request := &controlv1.AddShareRequest{Server: server, Share: share}
			if err := s.client.Do(ctx, "sim", "AddShare", request, &controlv1.AddShareResponse{}); err != nil {
				return err
			}
			return s.done(args[0], "added")
		}),
	)
}

func (a *app) simAccount() *cobra.Command {
	return a.group(page{
		use:     "account",
		short:   "Add users to SMB servers, and change their passwords",
		long:    "Add users to SMB servers in the node's network, and change their passwords.",
		example: "  csi-proxyctl sim account password files csi --password-file secret.txt",
	},
		a.simSecret(page{
			use:     "add SERVER USER",
			short:   "Add a user to a server",
			long:    "Add a user to a server (AddAccount). Prompts for the password, or reads it from a file or from standard input.",
			example: "  csi-proxyctl sim account add files csi --password-file secret.txt",
		}, "added", "AddAccount", func(server, user, password string) (in, out proto.Message) {
			return &controlv1.AddAccountRequest{Server: server, User: user, Password: password}, &controlv1.AddAccountResponse{}
		}),
		a.simSecret(page{
			use:   "password SERVER USER",
			short: "Change the password of a user on the server",
			long: `Change the password of a user on the server (SetPassword). The node keeps the old one: the next access fails,
unless the model says that the server keeps sessions. Prompts for the password, or reads it
from a file or from standard input.`,
			example: "  csi-proxyctl sim account password files csi --password-stdin < secret.txt",
		}, "password changed", "SetPassword", func(server, user, password string) (in, out proto.Message) {
			return &controlv1.SetPasswordRequest{Server: server, User: user, Password: password}, &controlv1.SetPasswordResponse{}
		}),
	)
}

func (a *app) simSecret(p page, result, method string, prepare func(server, user, password string) (in, out proto.Message)) *cobra.Command {
	secret := secretFlags{word: "password"}
	c := a.interactive(p, 2, func(ctx context.Context, s *session, args []string) error {
		password, err := secret.read(a.env, "Password of "+args[1]+" on "+args[0]+": ")
		if err != nil {
			return err
		}
		in, out := prepare(args[0], args[1], password)
		return a.bounded(ctx, func(ctx context.Context) error {
			if err := s.client.Do(ctx, "sim", method, in, out); err != nil {
				return err
			}
			return s.done(args[1]+" on "+args[0], result)
		})
	})
	secret.register(c.Flags())
	return c
}
