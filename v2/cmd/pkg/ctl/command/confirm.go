package command

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
)

type effect struct {
	Object string `json:"object"`
	Action string `json:"action"`
	// Changes is false if the object is already as it should be.
	Changes bool `json:"changes"`
	// Touches are the volumes, paths and pods that the change concerns.
	Touches []string `json:"touches"`
	// Unknown is what could not be found out.
	Unknown []string `json:"unknown"`

	question string // yes means to do it
	fails    bool   // the server refuses; Action says why
}

func (e effect) text() string {
	verb := "would " + e.Action
	if !e.Changes && !e.fails {
		verb = "would change nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", output.Printable(e.Object), verb)
	for _, line := range e.Touches {
		b.WriteString("  " + output.Printable(line) + "\n")
	}
	for _, line := range e.Unknown {
		b.WriteString("  not known: " + output.Printable(line) + "\n")
	}
	return b.String()
}

// dangerous makes a command that asks before it runs, unless --yes is set or find says that
// nothing would change. It also asks if find expects the server to refuse, because find can be wrong.
// harmless, if it is not nil, says that there is nothing to ask.
func (a *app) dangerous(p page, find func(ctx context.Context, s *session, args []string) (effect, error), run runner, harmless func(args []string) bool) *cobra.Command {
	var yes, dryRun bool
	c := a.interactive(p, 1, func(ctx context.Context, s *session, args []string) error {
		if asks := harmless == nil || !harmless(args); dryRun || asks && !yes {
			if !dryRun {
				if err := a.checkCanAsk(); err != nil {
					return err
				}
			}
			var found effect
			err := a.bounded(ctx, func(ctx context.Context) (err error) {
				found, err = find(ctx, s, args)
				return err
			})
			if err != nil {
				return err
			}
			if dryRun {
				return s.Value(found, found.text)
			}
			if found.Changes || found.fails {
				fmt.Fprint(a.env.Err, found.text())
				if err := a.mustConfirm(ctx, found.question, found.Object); err != nil {
					return err
				}
			}
		}
		return a.bounded(ctx, func(ctx context.Context) error { return run(ctx, s, args) })
	})
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would happen, and change nothing")
	return c
}

// checkCanAsk refuses to ask a script: it could wait forever, or read the input of the script.
func (a *app) checkCanAsk() error {
	if a.env.CanAsk {
		return nil
	}
	return usagef("cannot ask for confirmation: standard input is not a terminal; use --yes")
}

// mustConfirm asks and returns an error if the answer is not yes.
func (a *app) mustConfirm(ctx context.Context, question, object string) error {
	if err := a.checkCanAsk(); err != nil {
		return err
	}
	confirmed, err := a.confirm(ctx, question)
	if err == nil && !confirmed {
		err = fmt.Errorf("%s not changed: not confirmed", object)
	}
	return err
}

// confirm asks on standard error, because standard output is for results. It ends with ctx
// even if there is no answer.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.env.Err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.env.In).ReadString('\n') // an error means no
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.env.Err)
		return false, ctx.Err()
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
		return false, nil
	}
}

// describeFor describes the node for an effect. If it does not answer, what uses the object becomes
// unknown. It fails if ctx ends.
func describeFor(ctx context.Context, s *session, e *effect) (inventory.Node, error) {
	e.Touches, e.Unknown = []string{}, []string{}
	node, err := s.source.Node(ctx)
	if err != nil && ctx.Err() == nil {
		e.Unknown = append(e.Unknown, "what uses it: "+inventory.Reason(err))
		err = nil
	}
	return node, err
}

// touch adds a volume with the paths and pods that use it.
func (e *effect) touch(node inventory.Node, v *extensionv1.Volume) {
	line := "volume " + inventory.ShortID(v.GetId()) + ", " + cmp.Or(v.GetFileSystem(), v.GetState())
	if v.UsedBytes != nil && v.TotalBytes != nil {
		line += ", " + output.Size(v.GetUsedBytes()) + " of " + output.Size(v.GetTotalBytes()) + " used"
	}
	e.Touches = append(e.Touches, line)
	for _, path := range slices.Concat(v.GetMountPaths(), node.LinksTo(v)) {
		e.Touches = append(e.Touches, pathLine(path))
	}
}

// pathLine returns a path with the pod and volume that it belongs to.
func pathLine(path string) string {
	line := "path " + path
	if found, ok := kubelet.Parse(path); ok && found.PodUID != "" {
		line += " of pod " + found.PodUID
		if found.PV != "" {
			line += ", volume " + found.PV
		}
	}
	return line
}

// onDiskEffect finds out what a change of a whole disk touches. unchanged says whether the disk is
// already so.
func onDiskEffect(action, question string, unchanged func(d *extensionv1.Disk) bool) func(context.Context, *session, []string) (effect, error) {
	return func(ctx context.Context, s *session, args []string) (effect, error) {
		number, err := parseDisk(args[0])
		if err != nil {
			return effect{}, err
		}
		e := effect{Object: fmt.Sprintf("disk %d", number), Action: action, Changes: true, question: fmt.Sprintf(question, number)}
		node, err := describeFor(ctx, s, &e)
		if err != nil {
			return e, err
		}
		found := false
		for _, d := range node.GetDisks() {
			if d.Number == nil || d.GetNumber() != number {
				continue
			}
			found = true
			e.Changes = !unchanged(d)
			line := e.Object
			if d.SizeBytes != nil {
				line += ", " + output.Size(d.GetSizeBytes())
			}
			if d.GetSerialNumber() != "" {
				line += ", serial " + d.GetSerialNumber()
			}
			if d.GetSystem() {
				e.fail("Windows runs from it")
			}
			e.Touches = append(e.Touches, line)
		}
		for _, v := range node.GetVolumes() {
			if slices.Contains(v.GetDisks(), number) {
				e.touch(node, v)
			}
		}
		if !found && len(e.Unknown) == 0 {
			hidden := slices.ContainsFunc(node.GetDisks(), func(d *extensionv1.Disk) bool { return d.Number == nil })
			e.notListed("the disk", hidden)
		}
		return e, nil
	}
}

// formatEffect finds out what formatting a volume touches.
func formatEffect(ctx context.Context, s *session, args []string) (effect, error) {
	id := volumeID(args[0])
	e := effect{Object: "volume " + inventory.ShortID(id), Action: "format it with NTFS", Changes: true, question: "Format volume " + output.Printable(inventory.ShortID(id)) + "? What is on it is lost."}
	node, err := describeFor(ctx, s, &e)
	if err != nil {
		return e, err
	}
	found := false
	for _, v := range node.GetVolumes() {
		if strings.EqualFold(v.GetId(), id) {
			found = true
			e.touch(node, v)
			if v.GetState() == extensionv1.VolumeFormatted {
				e.Action = "keep the file system, or destroy it if the daemon runs with -format-existing or is the original"
			}
		}
	}
	if !found && len(e.Unknown) == 0 {
		e.notListed("the volume", false)
	}
	return e, nil
}

// notListed says that the server does not list the object. If the server has objects that it cannot
// name, the object may be one of them; otherwise the command fails.
func (e *effect) notListed(object string, hidden bool) {
	if hidden {
		e.Unknown = append(e.Unknown, object+" itself: the server does not list it, and one does not answer")
		return
	}
	e.fail("the server does not list it")
}

// fail says that the server refuses, and so nothing changes.
func (e *effect) fail(reason string) { e.Action, e.Changes, e.fails = "fail: "+reason, false, true }

// removal is a way to remove a directory or what is in it.
type removal struct {
	action, question string
	contents         bool // only what is in it; the server refuses links
	onlyEmpty        bool // the server refuses a directory with contents
}

func (r removal) effect(ctx context.Context, s *session, args []string) (effect, error) {
	path := args[0]
	e := effect{Object: path, Action: r.action, Touches: []string{}, Unknown: []string{}, question: fmt.Sprintf(r.question, output.Printable(path))}
	var exists filesystemv2alpha1.PathExistsResponse
	if err := s.client.Do(ctx, "filesystem", "PathExists", &filesystemv2alpha1.PathExistsRequest{Path: path}, &exists); err != nil {
		return e, err
	}
	if e.Changes = exists.GetExists(); !e.Changes {
		return e, nil
	}
	var link filesystemv2alpha1.IsSymlinkResponse
	err := s.client.Do(ctx, "filesystem", "IsSymlink", &filesystemv2alpha1.IsSymlinkRequest{Path: path}, &link)
	switch isLink := err == nil && link.GetIsSymlink() || isDangling(ctx, s, path); {
	case isLink && r.contents:
		e.fail("it is a link or a mounted folder; remove it with 'csi-proxyctl fs rmdir'")
		return e, nil
	case isLink:
		e.Action = "remove the link or mounted folder, and nothing behind it"
		return e, nil
	}
	node, err := describeFor(ctx, s, &e)
	if err != nil {
		return e, err
	}
	entries, err := entriesOf(ctx, s, path)
	switch {
	case ctx.Err() != nil:
		return e, err
	case err != nil:
		e.Unknown = append(e.Unknown, "how many entries it has: "+inventory.Reason(err))
	case len(entries.GetEntries()) == 0:
		e.Changes = !r.contents
		e.Touches = append(e.Touches, "it is empty")
	case r.onlyEmpty:
		e.fail("it is not empty; use --force to remove it with its contents")
		e.Touches = append(e.Touches, contentsLine(entries))
		return e, nil
	default:
		e.Touches = append(e.Touches, contentsLine(entries))
	}
	e.touchBelow(node, path)
	return e, nil
}

// isDangling reports whether a path is a link, wherever it leads: IsSymlink reports only links whose
// target exists.
func isDangling(ctx context.Context, s *session, path string) bool {
	at := strings.LastIndexByte(path, '\\')
	if at < 0 {
		return false
	}
	entries, err := entriesOf(ctx, s, path[:at])
	return err == nil && slices.ContainsFunc(entries.GetEntries(), func(e *extensionv1.Entry) bool {
		return strings.EqualFold(e.GetName(), path[at+1:]) && (e.GetType() == extensionv1.EntryLink || e.GetType() == extensionv1.EntryMount)
	})
}

func contentsLine(list *extensionv1.Directory) string {
	least := ""
	if list.GetTruncated() {
		least = "at least "
	}
	return fmt.Sprintf("entries in it: %s%d, and what is in those that are directories", least, len(list.GetEntries()))
}

// touchBelow adds the mounts and links below a directory, whose targets stay.
func (e *effect) touchBelow(node inventory.Node, dir string) {
	prefix := strings.ToLower(strings.TrimRight(dir, `\`)) + `\`
	add := func(what string, paths ...string) {
		for _, path := range paths {
			if strings.HasPrefix(strings.ToLower(path), prefix) {
				e.Touches = append(e.Touches, pathLine(path)+what)
			}
		}
	}
	for _, v := range node.GetVolumes() {
		add(": a mount of volume "+inventory.ShortID(v.GetId())+", whose files stay", v.GetMountPaths()...)
		add(": a link to volume "+inventory.ShortID(v.GetId())+", whose files stay", node.LinksTo(v)...)
	}
	for _, share := range node.GetShares() {
		add(": a link to "+share.GetRemote()+", whose files stay", share.GetLinks()...)
	}
	for _, stale := range node.Stale() {
		add(": a stale mount", stale.GetPath())
	}
}
