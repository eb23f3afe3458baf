package command

import (
	"context"

	"github.com/spf13/cobra"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
)

func (a *app) smb() *cobra.Command {
	return a.group(page{
		use:     "smb",
		short:   "SMB: map and unmap shares for the whole node",
		long:    "A share that is mapped can be used by every process of the node, without its password.",
		example: `  csi-proxyctl smb map '\\files\data' --user csi`,
	},
		a.smbMap(),
		a.leaf(page{
			use:     "unmap SHARE",
			short:   "Remove the mapping of a share",
			long:    "Remove the mapping of a share (RemoveSmbGlobalMapping). Repeating it changes nothing.",
			example: `  csi-proxyctl smb unmap '\\files\data'`,
		}, 1, func(ctx context.Context, s *session, args []string) error {
			request := &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: args[0]}
			if err := s.client.Do(ctx, "smb", "RemoveSmbGlobalMapping", request, &smbv1.RemoveSmbGlobalMappingResponse{}); err != nil {
				return err
			}
			return s.done(args[0], "unmapped")
		}),
	)
}

func (a *app) smbMap() *cobra.Command {
	var user, link string
	password := secretFlags{word: "password"}
	c := a.asking(page{
		use:   "map SHARE",
		short: "Map a share for the whole node",
		long: `Map a share for the whole node (NewSmbGlobalMapping). The password is asked for, or comes
from a file or from standard input; it is never an argument, which process lists show.`,
		example: `  csi-proxyctl smb map '\\files\data' --user csi
  csi-proxyctl smb map '\\files\data' --user 'CORP\csi' --password-file secret.txt
  csi-proxyctl smb map '\\files\data' --user csi --link 'C:\var\lib\kubelet\plugins\smb\data' --password-stdin < secret.txt`,
	}, 1, func(ctx context.Context, s *session, args []string) error {
		if user == "" {
			return usagef("--user is missing")
		}
		secret, err := password.read(a.env, "Password of "+user+" for "+args[0]+": ")
		if err != nil {
			return err
		}
		request := &smbv1.NewSmbGlobalMappingRequest{RemotePath: args[0], LocalPath: link, Username: user, Password: secret}
		return a.bounded(ctx, func(ctx context.Context) error {
			if err := s.client.Do(ctx, "smb", "NewSmbGlobalMapping", request, &smbv1.NewSmbGlobalMappingResponse{}); err != nil {
				return err
			}
			return s.done(args[0], "mapped")
		})
	})
	c.Flags().StringVar(&user, "user", "", `user of the share: USER, DOMAIN\USER or USER@DOMAIN`)
	c.Flags().StringVar(&link, "link", "", "path at which to make a link to the share")
	password.register(c.Flags())
	return c
}
