package main

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/client"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	clientv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	clientv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1alpha1"
	clientv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta1"
	clientv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
)

// A driver stages a volume once on a node, below plugins, and publishes it to each pod
// as a link, below pods. Volume a belongs to the oldest of three drivers on this node,
// b to a younger one, c to the youngest.
const (
	kubelet = `C:\var\lib\kubelet`
	stagedA = kubelet + `\plugins\a`
	stagedB = kubelet + `\plugins\b`
	stagedC = kubelet + `\plugins\c`
	pod     = kubelet + `\pods\web`
	podA    = pod + `\a`
	podB    = pod + `\b`
	podC    = pod + `\c`
	outside = `C:\Windows\System32\c`
)

// clients are those of the filesystem group in four versions.
type clients struct {
	v1alpha1 *clientv1alpha1.Client
	v1beta1  *clientv1beta1.Client
	v1       *clientv1.Client
	v2alpha1 *clientv2alpha1.Client
}

// connect waits until the node answers.
func connect(ctx context.Context) (c clients, err error) {
	if c.v1alpha1, err = clientv1alpha1.New(ctx, client.WithWait()); err != nil {
		return c, err
	}
	if c.v1beta1, err = clientv1beta1.New(ctx, client.WithWait()); err != nil {
		return c, err
	}
	if c.v1, err = clientv1.New(ctx, client.WithWait()); err != nil {
		return c, err
	}
	c.v2alpha1, err = clientv2alpha1.New(ctx, client.WithWait())
	return c, err
}

func (c clients) close() {
	c.v1alpha1.Close()
	c.v1beta1.Close()
	c.v1.Close()
	c.v2alpha1.Close()
}

// step is one call and the answer it should get: "done", "yes", "no" or a gRPC code.
type step struct {
	api, call, want string
	do              func() (answer string, err error)
}

func done[Response any](_ Response, err error) (string, error) { return "done", err }

func yesOrNo(yes bool, err error) (string, error) {
	if yes {
		return "yes", err
	}
	return "no", err
}

func (c clients) steps(ctx context.Context) []step {
	return []step{
		// The oldest version: links are mount points, and requests say whose path it is.
		{"v1alpha1", `Mkdir plugins\a`, "done", func() (string, error) {
			return done(c.v1alpha1.Mkdir(ctx, &filesystemv1alpha1.MkdirRequest{Path: stagedA, Context: filesystemv1alpha1.PathContext_PLUGIN}))
		}},
		{"v1alpha1", `Mkdir pods\web`, "done", func() (string, error) {
			return done(c.v1alpha1.Mkdir(ctx, &filesystemv1alpha1.MkdirRequest{Path: pod, Context: filesystemv1alpha1.PathContext_POD}))
		}},
		{"v1alpha1", `LinkPath pods\web\a to plugins\a`, "done", func() (string, error) {
			return done(c.v1alpha1.LinkPath(ctx, &filesystemv1alpha1.LinkPathRequest{SourcePath: stagedA, TargetPath: podA}))
		}},
		{"v1alpha1", `IsMountPoint pods\web\a`, "yes", func() (string, error) {
			r, err := c.v1alpha1.IsMountPoint(ctx, &filesystemv1alpha1.IsMountPointRequest{Path: podA})
			return yesOrNo(r.GetIsMountPoint(), err)
		}},

		{"v1beta1", `Mkdir plugins\b`, "done", func() (string, error) {
			return done(c.v1beta1.Mkdir(ctx, &filesystemv1beta1.MkdirRequest{Path: stagedB, Context: filesystemv1beta1.PathContext_PLUGIN}))
		}},
		{"v1beta1", `LinkPath pods\web\b to plugins\b`, "done", func() (string, error) {
			return done(c.v1beta1.LinkPath(ctx, &filesystemv1beta1.LinkPathRequest{SourcePath: stagedB, TargetPath: podB}))
		}},
		{"v1beta1", `IsMountPoint pods\web\b`, "yes", func() (string, error) {
			r, err := c.v1beta1.IsMountPoint(ctx, &filesystemv1beta1.IsMountPointRequest{Path: podB})
			return yesOrNo(r.GetIsMountPoint(), err)
		}},

		{"v1", `Mkdir plugins\c`, "done", func() (string, error) {
			return done(c.v1.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: stagedC}))
		}},
		{"v1", `IsSymlink plugins\c`, "no", func() (string, error) {
			r, err := c.v1.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: stagedC})
			return yesOrNo(r.GetIsSymlink(), err)
		}},
		{"v1", `CreateSymlink pods\web\c to plugins\c`, "done", func() (string, error) {
			return done(c.v1.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: stagedC, TargetPath: podC}))
		}},
		{"v1", `IsSymlink pods\web\c`, "yes", func() (string, error) {
			r, err := c.v1.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: podC})
			return yesOrNo(r.GetIsSymlink(), err)
		}},
		{"v1", `IsSymlink pods\web\a, made through v1alpha1`, "yes", func() (string, error) {
			r, err := c.v1.IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: podA})
			return yesOrNo(r.GetIsSymlink(), err)
		}},

		// Kubelet repeats what it is not sure of. Work that is done already is a success,
		// other people's work is never replaced.
		{"v1", `Mkdir plugins\c again`, "done", func() (string, error) {
			return done(c.v1.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: stagedC}))
		}},
		{"v1", `CreateSymlink pods\web\c to plugins\c again`, "done", func() (string, error) {
			return done(c.v1.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: stagedC, TargetPath: podC}))
		}},
		{"v1", `CreateSymlink pods\web\c to plugins\b`, "AlreadyExists", func() (string, error) {
			return done(c.v1.CreateSymlink(ctx, &filesystemv1.CreateSymlinkRequest{SourcePath: stagedB, TargetPath: podC}))
		}},

		// Paths come from whoever can create a pod, so the proxy judges each of them.
		{"v1", "Mkdir " + outside, "PermissionDenied", func() (string, error) {
			return done(c.v1.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: outside}))
		}},
		{"v1", `Rmdir pods\..\..\..\..\Windows, with force`, "InvalidArgument", func() (string, error) {
			return done(c.v1.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: kubelet + `\pods\..\..\..\..\Windows`, Force: true}))
		}},

		// Removing a link never touches what it leads to.
		{"v1", `Rmdir pods\web\c, with force`, "done", func() (string, error) {
			return done(c.v1.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: podC, Force: true}))
		}},
		{"v1", `PathExists pods\web\c`, "no", func() (string, error) {
			r, err := c.v1.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: podC})
			return yesOrNo(r.GetExists(), err)
		}},
		{"v1", `PathExists plugins\c`, "yes", func() (string, error) {
			r, err := c.v1.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: stagedC})
			return yesOrNo(r.GetExists(), err)
		}},
		{"v2alpha1", `RmdirContents pods\web`, "done", func() (string, error) {
			return done(c.v2alpha1.RmdirContents(ctx, &filesystemv2alpha1.RmdirContentsRequest{Path: pod}))
		}},
		{"v1beta1", `PathExists pods\web\b`, "no", func() (string, error) {
			r, err := c.v1beta1.PathExists(ctx, &filesystemv1beta1.PathExistsRequest{Path: podB})
			return yesOrNo(r.GetExists(), err)
		}},
		{"v1alpha1", `Rmdir plugins\a`, "done", func() (string, error) {
			return done(c.v1alpha1.Rmdir(ctx, &filesystemv1alpha1.RmdirRequest{Path: stagedA}))
		}},
		{"v1alpha1", `PathExists plugins\a`, "no", func() (string, error) {
			r, err := c.v1alpha1.PathExists(ctx, &filesystemv1alpha1.PathExistsRequest{Path: stagedA})
			return yesOrNo(r.GetExists(), err)
		}},
	}
}
