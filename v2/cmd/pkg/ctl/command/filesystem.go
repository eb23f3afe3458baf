package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
)

func (a *app) filesystem() *cobra.Command {
	return a.group(page{
		use:   "fs",
		short: "List, create and remove directories and links",
		long: `PATH is a Windows path on the node, inside the daemon's -kubelet-path or a -working-dir.
C:/dir is C:\dir, and needs no quotes in any shell. /dir is on the drive of Windows.`,
		example: `  csi-proxyctl fs exists 'C:\var\lib\kubelet\pods'`,
	},
		a.simple(simple{page: page{
			use:     "exists PATH",
			short:   "Show whether a path exists",
			long:    "Print true if a path exists, else false (PathExists). The exit code is 0 in both cases.",
			example: `  csi-proxyctl fs exists 'C:\var\lib\kubelet\pods'`,
		}, method: "filesystem/PathExists"}),
		a.leaf(page{
			use:   "ls PATH",
			short: "List a directory",
			long: `List a directory: its files, directories, links with where they lead, and mounted folders
with their volumes. It lists at most 1000 entries, and nothing that a link or a mounted
folder leads to.

The published API has no such call, so this needs a csi-proxy that has its own.`,
			example: `  csi-proxyctl fs ls 'C:\var\lib\kubelet\pods'`,
		}, 1, listDir),
		a.simple(simple{page: page{
			use:     "mkdir PATH",
			short:   "Create a directory and its parents",
			long:    "Does nothing if it exists.",
			example: `  csi-proxyctl fs mkdir 'C:\var\lib\kubelet\plugins\x'`,
		}, method: "filesystem/Mkdir", object: "{1}", done: "created"}),
		a.rmdir(),
		a.dangerous(page{
			use:   "rm-contents PATH",
			short: "Remove the contents of a directory",
			long: `Remove the contents of a directory but not the directory (RmdirContents). Removes links,
but not their targets. Asks for confirmation; scripts use --yes.`,
			example: `  csi-proxyctl fs rm-contents --yes 'C:\var\lib\kubelet\plugins\x\cache'`,
		}, removal{action: "remove its contents", question: "Remove everything in %s?", contents: true}.effect, removeContents, nil),
		a.simple(simple{page: page{
			use:     "link SOURCE TARGET",
			short:   "Create a link at TARGET that points to SOURCE",
			example: `  csi-proxyctl fs link 'C:\var\lib\kubelet\plugins\x\globalmount' 'C:\var\lib\kubelet\pods\p\volumes\v\mount'`,
		}, method: "filesystem/CreateSymlink", object: "{2}", done: "linked to {1}"}),
		a.simple(simple{page: page{
			use:     "is-link PATH",
			short:   "Show whether a path is a link or a mounted folder",
			long:    "Print true if a path is a link or a mounted folder whose target exists, else false (IsSymlink). The exit code is 0 in both cases.",
			example: `  csi-proxyctl fs is-link 'C:\var\lib\kubelet\pods\p\volumes\v\mount'`,
		}, method: "filesystem/IsSymlink"}),
	)
}

func (a *app) rmdir() *cobra.Command {
	var force bool
	find := func(ctx context.Context, s *session, args []string) (effect, error) {
		r := removal{action: "remove it", question: "Remove %s? A pod may need it.", onlyEmpty: !force}
		if force {
			r.action, r.question = "remove it with its contents", "Remove %s with everything in it?"
		}
		return r.effect(ctx, s, args)
	}
	c := a.dangerous(page{
		use:   "rmdir PATH",
		short: "Remove a directory or a link",
		long: `Remove a directory or a link (Rmdir). Does nothing if it does not exist. With --force, and in
what belongs to a pod, it asks for confirmation; scripts use --yes.`,
		example: `  csi-proxyctl fs rmdir 'C:\var\lib\kubelet\plugins\x'
  csi-proxyctl fs rmdir --force --yes 'C:\var\lib\kubelet\plugins\x'`,
	}, find, func(ctx context.Context, s *session, args []string) error {
		request := &filesystemv2alpha1.RmdirRequest{Path: args[0], Force: force}
		return s.change(ctx, "filesystem", "Rmdir", request, &filesystemv2alpha1.RmdirResponse{}, args[0], "removed")
	}, func(args []string) bool { return !force && !ofPod(args[0]) })
	c.Flags().BoolVar(&force, "force", false, "also remove a file, or a directory with its contents")
	return c
}

// ofPod reports whether a path is below a pod's directory, or is where a volume is staged that pods use.
func ofPod(path string) bool {
	_, used := kubelet.Parse(path)
	parts := strings.Split(strings.ToLower(path), `\`)
	pods := slices.Index(parts, "pods")
	return used || pods >= 0 && len(parts) > pods+2
}

func entriesOf(ctx context.Context, s *session, path string) (*extensionv1.Directory, error) {
	var response extensionv1.Directory
	err := s.client.Private(ctx, "filesystem", extensionv1.Paths_ListDirectory_FullMethodName, &extensionv1.Path{Path: path}, &response)
	if status.Code(err) == codes.Unimplemented {
		err = status.Errorf(codes.Unimplemented, "list %s: this server cannot; upgrade csi-proxy, or run 'dir /a' on the node", path)
	}
	return &response, err
}

func listDir(ctx context.Context, s *session, args []string) error {
	response, err := entriesOf(ctx, s, args[0])
	if err != nil {
		return err
	}
	list := []output.Object{}
	rows := output.Rows{Header: []string{"TYPE", "NAME", "TARGET"}, Name: 1, Empty: "the directory is empty"}
	for _, e := range response.GetEntries() {
		list = append(list, output.Message(e))
		rows.Add(output.Text(e.GetType()), output.Text(e.GetName()), output.Text(e.GetTarget()))
	}
	if err := s.list(list, &rows); err != nil {
		return err
	}
	if response.GetTruncated() {
		s.warn("the directory has more than these %d entries", len(list))
	}
	return nil
}

func removeContents(ctx context.Context, s *session, args []string) error {
	request := &filesystemv2alpha1.RmdirContentsRequest{Path: args[0]}
	return s.change(ctx, "filesystem", "RmdirContents", request, &filesystemv2alpha1.RmdirContentsResponse{}, args[0], "emptied")
}
