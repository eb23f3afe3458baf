package command

import (
	"context"

	"github.com/spf13/cobra"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
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
			use:     "unmap SHARE",
			short:   "Remove the mapping of a share",
			long:    "Remove the mapping of a share (RemoveSmbGlobalMapping). Does nothing if the share is not mapped.",
			example: `  csi-proxyctl smb unmap '\\files\data'`,
		}, 1, func(ctx context.Context, s *session, args []string) error {
			request := &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: args[0]}
			return s.change(ctx, "smb", "RemoveSmbGlobalMapping", request, &smbv1.RemoveSmbGlobalMappingResponse{}, args[0], "unmapped")
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
lists show arguments.`,
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
		return a.bounded(ctx, func(ctx context.Context) error {
			return s.change(ctx, "smb", "NewSmbGlobalMapping", request, &smbv1.NewSmbGlobalMappingResponse{}, args[0], "mapped")
		})
	})
	c.Flags().StringVar(&user, "user", "", `user of the share (required): USER, DOMAIN\USER or USER@DOMAIN`)
	c.Flags().StringVar(&link, "link", "", "create a link to the share at this path")
	password.register(c.Flags())
	return c
}
