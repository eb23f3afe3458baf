package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

type canvas struct {
	*output.Printer
	width int // 0: no limit
	node  Node
}

// Draw returns the node as a tree of at most this width; 0 means no limit. -o wide ignores the
// width and leaves nothing out.
func (n Node) Draw(p *output.Printer, width int) string { return p.Tree(n.Tree(p, width)) }

// DrawProblems returns only the problems of a node.
func (n Node) DrawProblems(p *output.Printer, width int) string {
	return p.Tree(newCanvas(n, p, width).problems())
}

func newCanvas(n Node, p *output.Printer, width int) canvas {
	if p.Format == output.Wide {
		width = 0
	}
	return canvas{p, width, output.PrintableCopy(n)}
}

// Tree returns what Draw draws. The root is the line with the counts.
func (n Node) Tree(p *output.Printer, width int) output.Branch {
	c := newCanvas(n, p, width)
	root := c.problems()
	var healthy []Row
	for _, row := range c.node.Rows() {
		if c.folds(row) {
			healthy = append(healthy, row)
		}
	}
	for _, disk := range c.node.GetDisks() {
		if !c.folds(Row{Disk: disk}) {
			root.Branches = append(root.Branches, c.disk(disk))
		}
	}
	for _, volume := range c.node.Loose() {
		if !c.folds(Row{Volume: volume}) {
			root.Branches = append(root.Branches, c.volume(1, volume, true))
		}
	}
	if len(healthy) > 0 {
		root.Branches = append(root.Branches, c.healthy(healthy))
	}
	for _, share := range c.node.GetShares() {
		root.Branches = append(root.Branches, c.share(share))
	}
	for _, session := range c.node.GetSessions() {
		root.Branches = append(root.Branches, c.session(session))
	}
	for _, link := range c.node.Outside() {
		root.Branches = append(root.Branches, output.Branch{Text: c.line(1, []output.Cell{
			{Text: c.labelled(1, "link ", link.GetPath())}, {Text: "leads out of the working directories, to " + link.GetTarget(), Style: output.Faint},
		})})
	}
	return root
}

// folds reports whether a disk or volume is one line of those without problems.
func (c canvas) folds(r Row) bool {
	switch {
	case c.Format == output.Wide || c.node.Unfolded:
		return false
	case r.Disk != nil:
		return !c.node.Troubled(r.Disk)
	default:
		return len(c.node.ProblemsOf(r.Volume)) == 0 && !c.node.affected(r.Volume.GetId())
	}
}

// healthy draws what has no problems, one line each.
func (c canvas) healthy(rows []Row) output.Branch {
	lines := [][]output.Cell{{{Text: "DISK"}, {Text: "SIZE"}, {Text: "PV"}, {Text: "POD"}, {Text: "DRIVER"}, {Text: "USE"}}}
	for _, r := range rows {
		pod := Several(c.node.PodNames(r.Users.Pods))
		line := []output.Cell{
			{Text: r.Name()}, {Text: r.Size}, {Text: cmp.Or(Several(r.Users.PVs), "-")}, {Text: cmp.Or(pod, r.State, "-")}, {Text: cmp.Or(Several(r.Users.Drivers), "-")}, {Text: "-"},
		}
		if r.Use >= 0 {
			line[5].Text = fmt.Sprintf("%3d%%", r.Use)
		}
		lines = append(lines, line)
	}
	widths := widthsOf(lines)
	if c.width > 0 { // who uses it matters most, then how full it is
		for _, column := range []int{4, 1} {
			if total(widths) > c.room(2) {
				widths[column] = -len(gap)
			}
		}
		for over := total(widths) - c.room(2); over > 0; over-- {
			if longest := 2 + slices.Index(widths[2:4], max(widths[2], widths[3])); widths[longest] > minWidth {
				widths[longest]--
			}
		}
	}
	branch := output.Branch{Text: "healthy"}
	for at, line := range c.columns(lines, widths, -1) {
		style := output.Plain
		if at == 0 {
			style = output.Faint
		}
		branch.Branches = append(branch.Branches, output.Branch{Text: c.Paint(style, strings.TrimRight(line, " "))})
	}
	return branch
}

func total(widths []int) (width int) {
	for _, w := range widths {
		width += w + len(gap)
	}
	return width - len(gap)
}

// Several returns the first of some names, and how many there are.
func Several(names []string) string {
	if len(names) > 1 {
		return fmt.Sprintf("%s +%d", names[0], len(names)-1)
	}
	return strings.Join(names, "")
}

// problems returns the line with the counts, and the problems below it.
func (c canvas) problems() output.Branch {
	n := c.node
	title := []output.Cell{{Text: strings.TrimSpace("node " + n.Host), Style: output.Bold}}
	for _, part := range []string{n.Serial, n.Stamp(), n.Programs()} {
		if part != "" {
			title = append(title, output.Cell{Text: part})
		}
	}
	style := output.Good
	if len(n.Problems) > 0 {
		style = Style(n.Problems[0].Severity)
	}
	root := output.Branch{Text: c.line(0, title) + "\n" + n.Counts() + ", " + c.Paint(style, n.Summary())}
	for _, p := range n.Problems {
		root.Branches = append(root.Branches, c.problem(p))
	}
	if calls := n.Failed(); len(calls) > 0 {
		root.Branches = append(root.Branches, output.Branch{Text: c.Paint(output.Bold, "calls that failed lately"), Branches: c.calls(calls)})
	}
	return root
}

// Failed returns the calls that failed lately, in lines.
func (n Node) Failed() (lines []string) {
	for _, f := range n.GetFailedCalls() {
		line := fmt.Sprintf("%s %s: %s (%s)", time.Unix(f.GetUnix(), 0).UTC().Format("15:04:05"), f.GetMethod(), f.GetError(), f.GetCode())
		if f.GetTimes() > 1 {
			line += fmt.Sprintf(", %d times", f.GetTimes())
		}
		lines = append(lines, line+"; "+f.GetRequest())
	}
	return lines
}

// maxCalls is how many failed calls are drawn.
const maxCalls = 5

func (c canvas) calls(lines []string) (branches []output.Branch) {
	for i, line := range lines {
		if i == maxCalls && c.Format != output.Wide {
			return append(branches, output.Branch{Text: fmt.Sprintf("and %d more", len(lines)-i)})
		}
		branches = append(branches, output.Branch{Text: c.wrap(2, line, output.Plain)})
	}
	return branches
}

// Counts returns the numbers of disks and volumes.
func (n Node) Counts() string {
	counts := []string{Count(len(n.GetDisks()), "disk"), Count(len(n.GetVolumes()), "volume")}
	for i, unknown := range []bool{n.Unlisted(len(n.GetDisks())), n.Unlisted(len(n.GetVolumes()))} {
		if unknown {
			counts[i] = "? " + strings.TrimPrefix(counts[i], "0 ")
		}
	}
	return strings.Join(counts, ", ")
}

// Unlisted reports whether Windows did not list a part of the node, of which so many are known: each node has a disk and
// a volume.
func (n Node) Unlisted(known int) bool {
	return known == 0 && slices.ContainsFunc(n.Problems, isSilence)
}

func isSilence(p Problem) bool { return p.Object.Type == problem.Node && p.Kind == problem.NoAnswer }

// Count returns a number of things.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

const gap = "  "

func (c canvas) disk(d *extensionv1.Disk) output.Branch {
	line := []output.Cell{{Text: "disk ?", Style: output.Bold}, {Text: size(d.SizeBytes)}, DiskState(d)}
	if d.Number != nil {
		line[0].Text = objectOf(d).Name()
	}
	switch style := d.GetPartitionStyle(); {
	case style == "RAW" && len(d.GetPartitions()) == 0:
		line = append(line, output.Cell{Text: "blank", Style: output.Faint})
	case style != "":
		line = append(line, output.Cell{Text: style})
	}
	if d.GetSystem() {
		line = append(line, output.Cell{Text: "Windows"})
	}
	if d.GetSerialNumber() != "" {
		line = append(line, output.Cell{Text: "serial " + d.GetSerialNumber()})
	}
	if d.Number == nil {
		line = append(line, output.Cell{Text: d.GetDevice()})
	}
	if c.Format == output.Wide {
		line = append(line, output.Cell{Text: "page83 " + cmp.Or(d.GetPage83(), "-"), Style: output.Faint}, output.Cell{Text: "at " + cmp.Or(d.GetLocation(), "-"), Style: output.Faint})
	}
	branch := output.Branch{Text: c.line(1, line)}
	for i, text := range c.partitions(d.GetPartitions()) {
		b := output.Branch{Text: text}
		if volume := c.node.Volume(d.GetPartitions()[i].GetVolumeId()); volume != nil {
			b.Branches = []output.Branch{c.volume(3, volume, false)}
		}
		branch.Branches = append(branch.Branches, b)
	}
	branch.Branches = append(branch.Branches, c.marks(c.node.ProblemsOf(d))...)
	return branch
}

// DiskState returns the state of a disk with its colour.
func DiskState(d *extensionv1.Disk) output.Cell {
	switch {
	case d.Online == nil:
		return output.Cell{Text: "state ?", Style: output.Faint}
	case d.GetOnline() && problem.Silent(d): // Windows calls it online all the same
		return output.Cell{Text: "unreadable", Style: output.Bad}
	case d.GetOnline() && d.GetReadOnly():
		return output.Cell{Text: "read-only", Style: output.Warning}
	default:
		return StateCell(d.GetOnline())
	}
}

// StateCell returns online or offline with its colour.
func StateCell(online bool) output.Cell {
	if online {
		return output.Cell{Text: "online", Style: output.Good}
	}
	return output.Cell{Text: "offline", Style: output.Bad}
}

func size(bytes *int64) string {
	if bytes == nil {
		return "size ?"
	}
	return output.Size(*bytes)
}

// partitions returns a line per partition of a disk, in columns.
func (c canvas) partitions(all []*extensionv1.Partition) []string {
	rows := make([][]output.Cell, len(all))
	for i, p := range all {
		rows[i] = []output.Cell{{Text: fmt.Sprintf("partition %d", p.GetNumber())}, {Text: output.Size(p.GetSizeBytes())}, {Text: p.GetType()}, {}}
		if v := c.node.Volume(p.GetVolumeId()); v != nil {
			rows[i][3] = content(v)
		}
	}
	lines := c.columns(rows, widthsOf(rows), 1)
	for i, p := range all {
		if v := c.node.Volume(p.GetVolumeId()); v != nil && v.TotalBytes != nil && v.UsedBytes != nil {
			lines[i] += gap + c.usage(v, false)
		}
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func content(v *extensionv1.Volume) output.Cell {
	switch {
	case v.GetState() == extensionv1.VolumeFormatted:
		return output.Cell{Text: cmp.Or(v.GetFileSystem(), "formatted")}
	case v.GetState() == Unknown:
		return output.Cell{Text: "?", Style: output.Faint}
	default:
		return output.Cell{Text: v.GetState(), Style: output.Warning}
	}
}

// volume draws a volume with its paths, and with its content if it is not in a partition.
func (c canvas) volume(depth int, v *extensionv1.Volume, loose bool) output.Branch {
	id := v.GetId()
	if c.Format != output.Wide {
		id = ShortID(id)
	}
	text := "volume " + id
	branch := output.Branch{}
	if loose {
		content := content(v)
		text += gap + c.Paint(content.Style, content.Text)
		if len(v.GetDisks()) > 0 {
			text += gap + "on disks " + Numbers(v.GetDisks())
		}
		if v.TotalBytes != nil && v.UsedBytes != nil {
			branch.Branches = []output.Branch{{Text: c.usage(v, true)}}
		}
	}
	branch.Text = text
	if format := c.format(v); len(format) > 0 {
		branch.Branches = append(branch.Branches, output.Branch{Text: c.line(depth+1, format)})
	}
	for _, path := range v.GetMountPaths() {
		branch.Branches = append(branch.Branches, c.use(depth+1, "", path))
	}
	for _, path := range c.node.LinksTo(v) {
		branch.Branches = append(branch.Branches, c.use(depth+1, "link ", path))
	}
	branch.Branches = append(branch.Branches, c.marks(c.node.ProblemsOf(v))...)
	return branch
}

// format returns how a volume was formatted, as far as it is known.
func (c canvas) format(v *extensionv1.Volume) (line []output.Cell) {
	if v.GetLabel() != "" {
		line = append(line, output.Cell{Text: "label " + v.GetLabel()})
	}
	if v.GetClusterSizeBytes() != 0 {
		line = append(line, output.Cell{Text: "clusters of " + output.Size(int64(v.GetClusterSizeBytes())), Style: output.Faint})
	}
	if v.GetRootAccess() != "" {
		access := "root access " + v.GetRootAccess()
		if c.node.AdministratorsOnly(v) {
			access += ", only administrators create files"
		}
		line = append(line, output.Cell{Text: access, Style: output.Faint})
	}
	return line
}

func (c canvas) share(s *extensionv1.Share) output.Branch {
	status := output.Cell{Text: s.GetStatus(), Style: output.Good}
	if s.GetStatus() != "ok" {
		status.Style = output.Warning
	}
	line := append([]output.Cell{{Text: "share " + s.GetRemote(), Style: output.Bold}, status}, Access(s)...)
	if s.Answers != nil {
		cell := output.Cell{Text: "answers", Style: output.Good}
		if !s.GetAnswers() {
			cell = output.Cell{Text: "does not answer", Style: output.Bad}
		}
		line = append(line, cell)
	}
	if s.GetRemovalWaits() {
		line = append(line, output.Cell{Text: "removal waits for its links", Style: output.Faint})
	}
	troubled := len(c.node.ProblemsOf(s)) > 0
	if fold := c.Format != output.Wide && !c.node.Unfolded && !troubled; fold {
		line = append(line, output.Cell{Text: cmp.Or(Several(c.node.PodNames(usersOf(s.GetLinks()).Pods)), Count(len(s.GetLinks()), "link"))})
		return output.Branch{Text: c.line(1, line)}
	}
	branch := output.Branch{Text: c.line(1, line)}
	for _, path := range s.GetLinks() {
		branch.Branches = append(branch.Branches, c.use(2, "link ", path))
	}
	branch.Branches = append(branch.Branches, c.marks(c.node.ProblemsOf(s))...)
	return branch
}

// Access returns the user and the encryption of a share that is mapped.
func Access(s *extensionv1.Share) []output.Cell {
	user, encryption := output.Cell{Text: "user " + s.GetUser()}, output.Cell{Text: "not encrypted"}
	switch {
	case !Mapped(s):
		return nil
	case s.User == nil:
		user = output.Cell{Text: "user ?", Style: output.Faint}
	case s.GetUser() == "":
		user.Text = "guest"
	}
	switch {
	case s.Private == nil:
		encryption = output.Cell{Text: "encryption ?", Style: output.Faint}
	case s.GetPrivate():
		encryption.Text = "encrypted"
	}
	return []output.Cell{user, encryption}
}

const barWidth = 10

// usage draws a bar and the used space of a volume, and the total size if whole is set.
func (c canvas) usage(v *extensionv1.Volume, whole bool) string {
	used, total, share := v.GetUsedBytes(), v.GetTotalBytes(), 0.0
	if total > 0 {
		share = float64(used) / float64(total)
	}
	full := min(barWidth, int(share*barWidth+0.5))
	style := output.Good
	for _, p := range c.node.ProblemsOf(v) {
		if p.Kind == problem.Full {
			style = Style(p.Severity)
		}
	}
	bar := c.Paint(style, strings.Repeat("█", full)) + c.Paint(output.Faint, strings.Repeat("░", barWidth-full))
	of := "used"
	if whole {
		of = "of " + output.Size(total)
	}
	// Rounded down, as problems are: only a volume without free space is 100% full.
	return fmt.Sprintf("%s %d%%%s%s %s", bar, int(share*100), gap, output.Size(used), of)
}

func (c canvas) session(s *extensionv1.Session) output.Branch {
	state := output.Cell{Text: "connected", Style: output.Good}
	if s.GetConnections() == 0 {
		state = output.Cell{Text: "not connected", Style: output.Bad}
	}
	line := []output.Cell{{Text: "iSCSI session " + s.GetTarget(), Style: output.Bold}, state}
	if len(s.GetDisks()) > 0 {
		line = append(line, output.Cell{Text: Count(len(s.GetDisks()), "disk") + ": " + Numbers(s.GetDisks())})
	}
	if s.GetPersistent() {
		line = append(line, output.Cell{Text: "persistent", Style: output.Faint})
	}
	return output.Branch{Text: c.line(1, line), Branches: c.marks(c.node.ProblemsOf(s))}
}

// Numbers returns the numbers of disks as a list.
func Numbers(disks []uint32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(disks), " ", ", "), "[]")
}

// marks draws the problems of an object in the tree. The problems before it have the remedies.
func (c canvas) marks(problems []Problem) []output.Branch {
	branches := make([]output.Branch, 0, len(problems))
	for _, p := range problems {
		branches = append(branches, output.Branch{Text: c.Paint(Style(p.Severity), "! "+string(p.Kind))})
	}
	return branches
}

// maxAffected is how many of the paths of a problem are drawn.
const maxAffected = 4

// problem draws a problem with what it affects and what to do. A command is on its own line, so that it
// is easy to copy.
func (c canvas) problem(p Problem) output.Branch {
	mark, text := "! "+p.Severity.Words()+": ", p.Text
	if p.Object.Type != problem.Node && p.Object.Type != problem.Mount {
		name := p.Name()
		if len(p.Others) == 0 {
			name = c.shorten(1, name, mark, ":")
		}
		text = name + ": " + text
	}
	if age := c.node.Age(p); age != "" {
		text += ", " + age
	}
	lines := []string{c.wrap(1, mark+text, Style(p.Severity))}
	names := p.Affects
	if len(p.Others) > 0 && len(p.Pods) > 0 { // instead of the paths of each
		lines = append(lines, c.indented(1, "pods "+strings.Join(c.node.PodNames(p.Pods), ", "), output.Plain))
		names = nil
	}
	if p.Object.Type == problem.Mount {
		names = append([]string{p.Object.ID}, names...)
	}
	slices.SortStableFunc(names, func(a, b string) int { // pods first
		x, _ := kubelet.Parse(a)
		y, _ := kubelet.Parse(b)
		return cmp.Compare(min(1, len(y.PodUID)), min(1, len(x.PodUID)))
	})
	for i, name := range names {
		if i == maxAffected && c.Format != output.Wide {
			lines = append(lines, fmt.Sprintf("  and %d more", len(names)-i))
			break
		}
		lines = append(lines, c.affected(name)...)
	}
	if p.Run != "" {
		lines = append(lines, gap+c.Paint(output.Bold, p.Run))
	}
	if p.Advice != "" {
		lines = append(lines, c.indented(1, p.Advice, output.Faint))
	}
	return output.Branch{Text: strings.Join(lines, "\n")}
}

// affected draws a path, volume or disk that does not work because of a problem.
func (c canvas) affected(name string) []string {
	if strings.HasPrefix(name, `\\?\Volume{`) {
		return []string{gap + "volume " + ShortID(name)}
	}
	return strings.Split(gap+strings.ReplaceAll(c.use(1, "", name, gap).Text, "\n", "\n"+gap), "\n")
}

// use draws a path. One of kubelet's shows driver, pod and persistent volume, which matter more than the
// rest of it. If they do not fit into a line, each has its own.
func (c canvas) use(depth int, label, path string, before ...string) output.Branch {
	found, ok := kubelet.Parse(path)
	if !ok {
		return output.Branch{Text: label + c.shorten(depth, path, append(before, label)...)}
	}
	var line []string
	for _, part := range []struct{ label, name string }{
		{"pod ", c.node.PodName(found.PodUID)}, {"pv ", found.PV}, {"container ", found.Container}, {"driver ", found.Driver},
	} {
		if part.name != "" {
			line = append(line, part.label+part.name)
		}
	}
	if found.Kind != kubelet.Pod {
		line = append([]string{string(found.Kind)}, line...)
	}
	if c.width == 0 {
		return output.Branch{Text: strings.Join(append(line, path), gap)}
	}
	joined := strings.Join(line, gap)
	if utf8.RuneCountInString(joined+strings.Join(before, "")) <= c.room(depth) {
		return output.Branch{Text: joined}
	}
	for i := range line {
		line[i] = c.shorten(depth, line[i], append(before, gap)...)
	}
	return output.Branch{Text: strings.Join(line, "\n"+gap)}
}
