package main

import (
	"context"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
)

const (
	share     = `\\files\data`
	shareLink = kubelet + `\plugins\demo\share`
	shareData = pod + `\share`
)

// smbSteps are the life of a volume on a share. The password is the node's; pods never see it.
func (c clients) smbSteps(ctx context.Context) []step {
	mapWith := func(password string) func() (string, error) {
		return func() (string, error) {
			return done(c.smb.NewSmbGlobalMapping(ctx, &smbv1.NewSmbGlobalMappingRequest{
				RemotePath: share, LocalPath: shareLink, Username: "csi", Password: password,
			}))
		}
	}
	unmap := func() (string, error) {
		return done(c.smb.RemoveSmbGlobalMapping(ctx, &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: share}))
	}
	isLink := func(path string) func() (string, error) {
		return func() (string, error) {
			r, err := c.files.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: path})
			return yesOrNo(r.GetIsSymlink(), err)
		}
	}
	rmdir := func(path string) func() (string, error) {
		return func() (string, error) {
			return done(c.files.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: path, Force: true}))
		}
	}

	return []step{
		{"smb", `NewSmbGlobalMapping with a wrong password`, "PermissionDenied", mapWith("wrong")},
		{"smb", `NewSmbGlobalMapping at plugins\demo\share`, "done", mapWith("csi-Pa55")},
		{"smb", `NewSmbGlobalMapping again`, "done", mapWith("csi-Pa55")},
		{"filesystem", `IsSymlink: does the share answer?`, "yes", isLink(shareLink)},
		{"filesystem", `CreateSymlink pods\web\share to the link`, "done", func() (string, error) {
			return done(c.files.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: shareLink, TargetPath: shareData}))
		}},
		{"filesystem", `IsSymlink pods\web\share`, "yes", isLink(shareData)},
		{"smb", `NewSmbGlobalMapping of \\localhost\C$`, "PermissionDenied", func() (string, error) {
			return done(c.smb.NewSmbGlobalMapping(ctx, &smbv1.NewSmbGlobalMappingRequest{RemotePath: `\\localhost\C$`}))
		}},
		{"filesystem", `Rmdir pods\web\share`, "done", rmdir(shareData)},
		{"filesystem", `Rmdir plugins\demo\share`, "done", rmdir(shareLink)},
		{"smb", "RemoveSmbGlobalMapping", "done", unmap},
		{"smb", "RemoveSmbGlobalMapping again", "done", unmap},
	}
}
