package command

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

func (a *app) smb() *cobra.Command {
	return a.group(page{
		use:     "smb",
		short:   "Map and unmap SMB shares for the whole node",
		long:    "Every process of the node can use a mapped share without a password.",
		example: `  csi-proxyctl smb map '\\files\data' --user csi`,
	},
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

// lookTime is how long mapShare waits to learn whether a share is mapped.
const lookTime = 10 * time.Second

// mapShare looks for a mapping first, because the server does not say that it has used one.
func (s *session) mapShare(ctx context.Context, request *smbv1.NewSmbGlobalMappingRequest) error {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	before, unknown, err := s.source.Share(limited, request.GetRemotePath())
	cancel()
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
	case unknown != "":
		text = "mapped; if it was mapped before, the password was not checked (not known: " + unknown + ")"
	case was:
		text = "was mapped already; the password was not checked unless the mapping was broken"
	}
	if unknown == "" {
		result.WasMapped = &was
	}
	return s.Value(result, func() string { return result.Object + ": " + text + "\n" })
}

// unmapped says what became of a mapping after its removal was asked for.
func (s *session) unmapped(ctx context.Context, remote string) error {
	after, unknown, err := s.source.Share(ctx, remote)
	if err != nil { // the removal has not failed
		unknown = inventory.Reason(err)
	}
	result := struct {
		Object string   `json:"object"`
		Done   string   `json:"done"` // unmapped, kept or unknown
		UsedBy []string `json:"usedBy"`
	}{Object: remote, Done: "unmapped", UsedBy: []string{}}
	text := "unmapped"
	switch {
	case unknown != "":
		result.Done = "unknown"
		text = "unmapped, unless a link uses it (not known: " + unknown + ")"
	case after != nil && len(after.Links) > 0:
		result.Done, result.UsedBy = "kept", after.Links
		text = "kept: used by " + output.Printable(strings.Join(after.Links, ", ")) + ", and goes with the last of them"
	case after != nil:
		result.Done = "kept"
		text = "kept: the server does not know what uses it; see its log"
	}
	return s.Value(result, func() string { return result.Object + ": " + text + "\n" })
}
