package command

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

func (a *app) smb() *cobra.Command {
	return a.group(page{
		use:     "smb",
		short:   "List, map and unmap SMB shares for the whole node",
		long:    "Every process of the node can use a mapped share without a password.",
		example: `  csi-proxyctl smb map '\\files\data' --user csi`,
	},
		a.smbList(),
		a.smbMap(),
		a.leaf(page{
			use:   "unmap SHARE",
			short: "Remove the mapping of a share",
			long: `Remove the mapping of a share (RemoveSmbGlobalMapping). Does nothing if the share is not mapped.

While links use the mapping, the server keeps it, and removes it with the last of them. The
command then names the links. With -o json, done is unmapped, kept or unknown.`,
			example: `  csi-proxyctl smb unmap '\\files\data'`,
		}, 1, func(ctx context.Context, s *session, args []string) error {
			request := &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: args[0]}
			if err := s.client.Do(ctx, "smb", "RemoveSmbGlobalMapping", request, &smbv1.RemoveSmbGlobalMappingResponse{}); err != nil {
				return err
			}
			return s.unmapped(ctx, args[0])
		}),
	)
}

func (a *app) smbList() *cobra.Command {
	var ask bool
	c := a.leaf(page{
		use:   "list",
		short: "List the shares that are mapped, and those that links need",
		long: `List the global mappings of SMB shares: server, user, what Windows knows of the connection,
how many links in the working directories lead into the share, and whether a driver has
unmapped it while links still use it (WAITS). A share that links lead into without a mapping
is 'not mapped'. The user is ? if another process, or the daemon before its last start,
created the mapping: Windows does not report it.

Windows' status stays ok when the server is gone or the password has changed. With --ask the
server opens every share, as pods do, and ANSWERS has the result. -o wide shows the links.`,
		example: `  csi-proxyctl smb list
  csi-proxyctl smb list --ask
  csi-proxyctl smb list -o wide`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		node, err := s.source.Shares(ctx, ask)
		if err != nil {
			return err
		}
		rows := output.Rows{Header: []string{"SHARE", "SERVER", "USER", "STATUS", "ANSWERS", "LINKS", "WAITS", "ENCRYPTED", "PATHS"}, Narrow: 7, Empty: "no shares are mapped"}
		for _, share := range node.GetShares() {
			rows.Add(shareCells(share)...)
		}
		if err := s.list(inventory.Objects(node, node.GetShares()), &rows); err != nil || s.Format.ForScripts() {
			return err
		}
		s.warnOf(node.About(problem.Share), problem.DeadShare, problem.NoAnswer, problem.WaitingRemoval)
		return nil
	})
	c.Flags().BoolVar(&ask, "ask", false, "open every share to find out whether it answers")
	return c
}

func shareCells(share *extensionv1.Share) []output.Cell {
	server, user := "", "?"
	if remote, err := unc.Parse("", share.GetRemote()); err == nil {
		server = strings.TrimPrefix(remote.Server(), `\\`)
	}
	switch {
	case !inventory.Mapped(share):
		user = ""
	case share.User != nil:
		user = cmp.Or(share.GetUser(), "guest")
	}
	status := output.Cell{Text: share.GetStatus(), Style: output.Good}
	if share.GetStatus() != "ok" {
		status.Style = output.Warning
	}
	return []output.Cell{
		output.Text(share.GetRemote()), output.Text(server), output.Text(user), status, yesNo(share.Answers),
		output.Text(strconv.Itoa(len(share.GetLinks()))), yesNo(share.RemovalWaits), yesNo(share.Private), output.Text(strings.Join(share.GetLinks(), " ")),
	}
}

func yesNo(value *bool) output.Cell {
	switch {
	case value == nil:
		return output.Text("")
	case *value:
		return output.Text("yes")
	default:
		return output.Text("no")
	}
}

func (a *app) smbMap() *cobra.Command {
	var user, link string
	password := secretFlags{word: "password"}
	c := a.interactive(page{
		use:   "map SHARE",
		short: "Map a share for the whole node",
		long: `Map a share for the whole node (NewSmbGlobalMapping). Prompts for the password, or reads it
from a file or from standard input. The password is never an argument, because process
lists show arguments.

The server uses a mapping that exists and works, and does not check the password then. The
command says so.`,
		example: `  csi-proxyctl smb map '\\files\data' --user csi
  csi-proxyctl smb map '\\files\data' --user 'CORP\csi' --password-file secret.txt
  csi-proxyctl smb map '\\files\data' --user csi --link 'C:\var\lib\kubelet\plugins\smb\data' --password-stdin < secret.txt`,
	}, 1, func(ctx context.Context, s *session, args []string) error {
		if user == "" {
			return usagef("--user is required")
		}
		secret, err := password.read(a.env, "Password of "+user+" for "+args[0]+": ")
		if err != nil {
			return err
		}
		request := &smbv1.NewSmbGlobalMappingRequest{RemotePath: args[0], LocalPath: link, Username: user, Password: secret}
		return a.bounded(ctx, func(ctx context.Context) error { return s.mapShare(ctx, request) })
	})
	c.Flags().StringVar(&user, "user", "", `user of the share (required): USER, DOMAIN\USER or USER@DOMAIN`)
	c.Flags().StringVar(&link, "link", "", "create a link to the share at this path")
	password.register(c.Flags())
	return c
}

// mapShare looks for a mapping first, because the server does not say that it has used one.
func (s *session) mapShare(ctx context.Context, request *smbv1.NewSmbGlobalMappingRequest) error {
	before, known, err := s.source.Share(ctx, request.GetRemotePath())
	if err != nil && !errors.Is(err, fs.ErrInvalid) { // the server refuses such a path
		return err
	}
	if err := s.client.Do(ctx, "smb", "NewSmbGlobalMapping", request, &smbv1.NewSmbGlobalMappingResponse{}); err != nil {
		return err
	}
	result := struct {
		Object    string `json:"object"`
		Done      string `json:"done"`
		WasMapped *bool  `json:"wasMapped"` // nil: unknown
	}{Object: request.GetRemotePath(), Done: "mapped"}
	text := "mapped"
	was := before != nil
	switch {
	case !known:
		text = "mapped; if it was mapped before, which the server does not say, the password was not checked"
	case was:
		text = "was mapped already; the password was not checked unless the mapping was broken"
	}
	if known {
		result.WasMapped = &was
	}
	return s.Value(result, func() string { return result.Object + ": " + text + "\n" })
}

// unmapped says what became of a mapping after its removal was asked for.
func (s *session) unmapped(ctx context.Context, remote string) error {
	after, known, err := s.source.Share(ctx, remote)
	result := struct {
		Object string   `json:"object"`
		Done   string   `json:"done"` // unmapped, kept or unknown
		UsedBy []string `json:"usedBy"`
	}{Object: remote, Done: "unmapped", UsedBy: []string{}}
	text := "unmapped"
	switch {
	case err != nil || !known: // the removal has not failed
		result.Done = "unknown"
		text = "unmapped, unless a link uses it, which the server does not say"
	case after != nil && len(after.GetLinks()) > 0:
		result.Done, result.UsedBy = "kept", after.GetLinks()
		text = "kept: used by " + output.Printable(strings.Join(after.GetLinks(), ", ")) + ", and goes with the last of them"
	case after != nil:
		result.Done = "kept"
		text = "kept: the server does not know what uses it; see its log"
	}
	return s.Value(result, func() string { return result.Object + ": " + text + "\n" })
}
