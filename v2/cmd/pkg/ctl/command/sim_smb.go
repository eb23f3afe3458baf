package command

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) simServer() *cobra.Command {
	return a.group(page{
		use:     "server",
		short:   "Add, stop and start SMB servers in the node's network",
		long:    "Add, stop and start SMB servers in the node's network.",
		example: "  csi-proxyctl sim server stop files",
	},
		a.simChange(page{
			use:     "add SERVER",
			short:   "Add a server without shares and users",
			long:    "Add a server without shares and users. SERVER is a host name or address.",
			example: `  csi-proxyctl sim server add srv.example`,
		}, "smbServers: [{name: $1}]", "server {1}", "added"),
		a.simChange(page{
			use:     "stop SERVER",
			short:   "Make a server unreachable",
			long:    "Make a server unreachable: accesses fail with ERROR_BAD_NETPATH (53). Does nothing if it is down.",
			example: `  csi-proxyctl sim server stop files`,
		}, "stopSMBServers: [$1]", "server {1}", "stopped"),
		a.simChange(page{
			use:     "start SERVER",
			short:   "Make a stopped server reachable again",
			long:    "Make a stopped server reachable again. Does nothing if it is up.",
			example: `  csi-proxyctl sim server start files`,
		}, "startSMBServers: [$1]", "server {1}", "started"),
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
			long:    `Add an empty share to a server. SHARE is \\server\share.`,
			example: `  csi-proxyctl sim share add '\\files\backup'`,
		}, 1, func(ctx context.Context, s *session, args []string) error {
			server, share, ok := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(args[0], "/", `\`), `\\`), `\`)
			if !ok {
				return usagef(`invalid share %q; write it as '\\server\share'`, args[0])
			}
			return changeServers(ctx, s, "smbShares", map[string]string{"server": server, "name": share}, args[0], "added")
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
			long:    "Add a user to a server. Prompts for the password, or reads it from a file or from standard input.",
			example: "  csi-proxyctl sim account add files csi --password-file secret.txt",
		}, "smbAccounts", "added"),
		a.simSecret(page{
			use:   "password SERVER USER",
			short: "Change the password of a user on the server",
			long: `Change the password of a user on the server (smbPasswords). The node keeps the old one: the next access fails,
unless the model says that the server keeps sessions. Prompts for the password, or reads it
from a file or from standard input.`,
			example: "  csi-proxyctl sim account password files csi --password-stdin < secret.txt",
		}, "smbPasswords", "password changed"),
	)
}

func (a *app) simSecret(p page, list, done string) *cobra.Command {
	secret := secretFlags{word: "password"}
	c := a.interactive(p, 2, func(ctx context.Context, s *session, args []string) error {
		password, err := secret.read(a.env, "Password of "+args[1]+" on "+args[0]+": ")
		if err != nil {
			return err
		}
		return a.bounded(ctx, func(ctx context.Context) error {
			account := map[string]string{"server": args[0], "user": args[1], "password": password}
			return changeServers(ctx, s, list, account, args[1]+" on "+args[0], done)
		})
	})
	secret.register(c.Flags())
	return c
}

// changeServers makes a change that is a list of one element.
func changeServers(ctx context.Context, s *session, list string, element map[string]string, object, done string) error {
	encoded, err := json.Marshal(map[string]any{list: []any{element}})
	if err != nil {
		return err
	}
	if _, err := s.client.Change(ctx, string(encoded)); err != nil {
		return err
	}
	return s.done(object, done)
}
