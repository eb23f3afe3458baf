package inventory

import (
	"fmt"
	"strings"
	"unicode/utf8"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/kubelet"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/warning"
)

// canvas draws a node.
type canvas struct {
	*output.Printer
	width int // 0: no limit
}

// Draw returns the node as a tree of at most this width; 0 means no limit. -o wide ignores the
// width and leaves nothing out.
func (n Node) Draw(p *output.Printer, width int) string { return p.Tree(n.Tree(p, width)) }

// DrawProblems returns only the problems of a node.
func (n Node) DrawProblems(p *output.Printer, width int) string {
	c, n := newCanvas(p, width), output.PrintableCopy(n)
	return p.Tree(c.problems(n))
}

func newCanvas(p *output.Printer, width int) canvas {
	if p.Format == output.Wide {
		width = 0
	}
	return canvas{p, width}
}

// Tree returns what Draw draws. The root is the line with the counts.
func (n Node) Tree(p *output.Printer, width int) output.Branch {
	c, n := newCanvas(p, width), output.PrintableCopy(n)
	root := c.problems(n)
	for _, disk := range n.Disks {
		root.Branches = append(root.Branches, c.disk(disk, n.Paths))
	}
	for _, volume := range n.Volumes {
		root.Branches = append(root.Branches, c.volume(1, volume, n.Paths, true))
	}
	for _, share := range n.Shares {
		root.Branches = append(root.Branches, c.share(share))
	}
	for _, session := range n.Sessions {
		root.Branches = append(root.Branches, c.session(session))
	}
	for _, path := range n.Paths {
		if (path.VolumeID == "" || n.find(path.VolumeID) == nil) && (!n.isStale(path.Path) || len(path.Warnings) > 0) {
			root.Branches = append(root.Branches, c.path(path))
		}
	}
	return root
}

// problems returns the line with the counts, and the problems below it.
func (c canvas) problems(n Node) output.Branch {
	title := c.Paint(output.Bold, strings.TrimSpace("node "+n.Serial))
	summary := fmt.Sprintf("  %s, %s, ", count(len(n.Disks), "disk"), count(len(n.AllVolumes()), "volume"))
	if warnings := len(n.Problems); warnings > 0 {
		summary += c.Paint(output.Warning, count(warnings, "warning"))
	} else {
		summary += "no warnings"
	}
	root := output.Branch{Text: title + summary}
	for _, w := range n.Problems {
		root.Branches = append(root.Branches, c.problem(w))
	}
	return root
}

// Counts returns how many disks, volumes and warnings the node has.
func (n Node) Counts() (disks, volumes, warnings int) {
	return len(n.Disks), len(n.AllVolumes()), len(n.Problems)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// gap separates the parts of a line.
const gap = "  "

func (c canvas) disk(d Disk, paths []Path) output.Branch {
	cell := d.State()
	line := []output.Cell{{Text: "disk ?", Style: output.Bold}, {Text: size(d.SizeBytes)}, cell}
	if d.Number != nil {
		line[0].Text = d.Name()
	}
	switch {
	case d.Style == "RAW" && len(d.Partitions) == 0:
		line = append(line, output.Cell{Text: "blank", Style: output.Faint})
	case d.Style != "":
		line = append(line, output.Cell{Text: d.Style})
	case d.Online != nil && len(d.Partitions) == 0: // from the API
		line = append(line, output.Cell{Text: "no volume", Style: output.Faint})
	}
	if d.System {
		line = append(line, output.Cell{Text: "Windows"})
	}
	if d.SerialNumber != "" {
		line = append(line, output.Cell{Text: "serial " + d.SerialNumber})
	}
	if d.Number == nil {
		line = append(line, output.Cell{Text: d.Device})
	}
	if c.Format == output.Wide {
		line = append(line, output.Cell{Text: "page83 " + orDash(d.Page83), Style: output.Faint}, output.Cell{Text: "at " + orDash(d.Location), Style: output.Faint})
	}
	branch := output.Branch{Text: c.line(1, line)}
	for i, text := range c.partitions(d.Partitions) {
		b := output.Branch{Text: text}
		if volume := d.Partitions[i].Volume; volume != nil {
			b.Branches = []output.Branch{c.volume(3, *volume, paths, false)}
		}
		branch.Branches = append(branch.Branches, b)
	}
	branch.Branches = append(branch.Branches, c.marks(d.Warnings)...)
	return branch
}

// State returns the state of a disk with its colour.
func (d Disk) State() output.Cell {
	switch {
	case d.Online == nil:
		return output.Cell{Text: "state ?", Style: output.Faint}
	case *d.Online && d.ReadOnly != nil && *d.ReadOnly:
		return output.Cell{Text: "read-only", Style: output.Warning}
	default:
		return StateCell(*d.Online)
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

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// partitions returns a line per partition of a disk, in columns.
func (c canvas) partitions(all []Partition) []string {
	rows := make([][]output.Cell, len(all))
	var widths [4]int
	for i, p := range all {
		row := []output.Cell{{Text: "partition ?"}, {}, {Text: p.Type}, {}}
		if p.Number > 0 {
			row[0].Text = fmt.Sprintf("partition %d", p.Number)
		}
		if p.SizeBytes != nil {
			row[1].Text = output.Size(*p.SizeBytes)
		}
		if p.Volume != nil {
			row[3] = p.Volume.content()
		}
		for column, cell := range row {
			widths[column] = max(widths[column], utf8.RuneCountInString(cell.Text))
		}
		rows[i] = row
	}
	lines := make([]string, len(all))
	for i, row := range rows {
		var parts []string
		for column, cell := range row {
			if widths[column] == 0 {
				continue
			}
			padding := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell.Text))
			if column == 1 { // numbers
				parts = append(parts, padding+cell.Text)
			} else {
				parts = append(parts, c.Paint(cell.Style, cell.Text)+padding)
			}
		}
		if v := all[i].Volume; v != nil && v.TotalBytes != nil && v.UsedBytes != nil {
			parts = append(parts, c.usage(*v.UsedBytes, *v.TotalBytes, all[i].SizeBytes == nil))
		}
		lines[i] = strings.TrimRight(strings.Join(parts, gap), " ")
	}
	return lines
}

// content returns the file system or state of a volume.
func (v Volume) content() output.Cell {
	switch {
	case v.State == extensionv1.VolumeFormatted && v.FileSystem != "":
		return output.Cell{Text: v.FileSystem}
	case v.State == extensionv1.VolumeFormatted:
		return output.Cell{Text: "formatted"}
	case v.State == Unknown:
		return output.Cell{Text: "?", Style: output.Faint}
	default:
		return output.Cell{Text: v.State, Style: output.Warning}
	}
}

// volume draws a volume with its paths, and with its content if it is not in a partition.
func (c canvas) volume(depth int, v Volume, paths []Path, loose bool) output.Branch {
	id := v.ID
	if c.Format != output.Wide {
		id = ShortID(id)
	}
	text := "volume " + id
	branch := output.Branch{}
	if loose {
		content := v.content()
		text += gap + c.Paint(content.Style, content.Text)
		if len(v.Disks) > 0 {
			text += gap + "on disks " + numbers(v.Disks)
		}
		if v.TotalBytes != nil && v.UsedBytes != nil {
			branch.Branches = []output.Branch{{Text: c.usage(*v.UsedBytes, *v.TotalBytes, true)}}
		}
	}
	branch.Text = text
	if format := v.format(); len(format) > 0 {
		branch.Branches = append(branch.Branches, output.Branch{Text: c.line(depth+1, format)})
	}
	for _, path := range v.MountPaths {
		branch.Branches = append(branch.Branches, output.Branch{Text: c.use(depth+1, "", path)})
	}
	for _, path := range v.Links {
		branch.Branches = append(branch.Branches, output.Branch{Text: c.use(depth+1, "link ", path)})
	}
	for _, path := range paths {
		if path.VolumeID != v.ID || (path.Leads && len(path.Warnings) == 0 && v.shows(path.Path)) {
			continue
		}
		verb := "holds "
		if path.Leads {
			verb = "reached by "
		}
		branch.Branches = append(branch.Branches, output.Branch{Text: c.labelled(depth+1, verb, path.Path), Branches: c.marks(path.Warnings)})
	}
	branch.Branches = append(branch.Branches, c.marks(v.Warnings)...)
	return branch
}

// format returns how a volume was formatted, as far as it is known.
func (v Volume) format() (line []output.Cell) {
	if v.Label != "" {
		line = append(line, output.Cell{Text: "label " + v.Label})
	}
	if v.ClusterSizeBytes != 0 {
		line = append(line, output.Cell{Text: "clusters of " + output.Size(int64(v.ClusterSizeBytes)), Style: output.Faint})
	}
	if v.RootAccess != "" {
		line = append(line, output.Cell{Text: "root access " + v.RootAccess, Style: output.Faint})
	}
	return line
}

// share draws the mapping of a share with its links.
func (c canvas) share(s Share) output.Branch {
	status := output.Cell{Text: s.Status, Style: output.Good}
	if s.Status != "ok" {
		status.Style = output.Warning
	}
	line := []output.Cell{{Text: "share " + s.Remote, Style: output.Bold}, status}
	if s.Mapped {
		line = append(line, s.user(), s.encryption())
	}
	if s.Answers != nil {
		cell := output.Cell{Text: "answers", Style: output.Good}
		if !*s.Answers {
			cell = output.Cell{Text: "does not answer", Style: output.Bad}
		}
		line = append(line, cell)
	}
	if s.RemovalWaits != nil && *s.RemovalWaits {
		line = append(line, output.Cell{Text: "removal waits for its links", Style: output.Faint})
	}
	branch := output.Branch{Text: c.line(1, line)}
	for _, path := range s.Links {
		branch.Branches = append(branch.Branches, output.Branch{Text: c.use(2, "link ", path)})
	}
	branch.Branches = append(branch.Branches, c.marks(s.Warnings)...)
	return branch
}

func (s Share) user() output.Cell {
	switch {
	case s.User == nil:
		return output.Cell{Text: "user ?", Style: output.Faint}
	case *s.User == "":
		return output.Cell{Text: "guest"}
	default:
		return output.Cell{Text: "user " + *s.User}
	}
}

func (s Share) encryption() output.Cell {
	switch {
	case s.Private == nil:
		return output.Cell{Text: "encryption ?", Style: output.Faint}
	case *s.Private:
		return output.Cell{Text: "encrypted"}
	default:
		return output.Cell{Text: "not encrypted"}
	}
}

// shows reports whether the volume's mounts and links include a path.
func (v *Volume) shows(path string) bool {
	for _, link := range v.Links {
		if strings.EqualFold(link, path) {
			return true
		}
	}
	return v.mountedAt(path)
}

// barWidth is the width of a full bar.
const barWidth = 10

// usage draws a bar and the used space, and the total size if whole is set.
func (c canvas) usage(used, total int64, whole bool) string {
	share := 0.0
	if total > 0 {
		share = float64(used) / float64(total)
	}
	full := min(barWidth, int(share*barWidth+0.5))
	style := output.Good
	if share > 0.9 {
		style = output.Warning
	}
	bar := c.Paint(style, strings.Repeat("█", full)) + c.Paint(output.Faint, strings.Repeat("░", barWidth-full))
	of := "used"
	if whole {
		of = "of " + output.Size(total)
	}
	// Rounded down, as warnings are: only a volume without free space is 100% full.
	return fmt.Sprintf("%s %d%%%s%s %s", bar, int(share*100), gap, output.Size(used), of)
}

// session draws an iSCSI session.
func (c canvas) session(s Session) output.Branch {
	state := output.Cell{Text: "connected", Style: output.Good}
	if s.Connections == 0 {
		state = output.Cell{Text: "not connected", Style: output.Bad}
	}
	line := []output.Cell{{Text: "iSCSI session " + s.Target, Style: output.Bold}, state}
	if len(s.Disks) > 0 {
		line = append(line, output.Cell{Text: count(len(s.Disks), "disk") + ": " + numbers(s.Disks)})
	}
	if s.Persistent {
		line = append(line, output.Cell{Text: "persistent", Style: output.Faint})
	}
	return output.Branch{Text: c.line(1, line), Branches: c.marks(s.Warnings)}
}

// numbers returns the numbers of disks as a list.
func numbers(disks []uint32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(disks), " ", ", "), "[]")
}

func (c canvas) path(path Path) output.Branch {
	text := c.labelled(1, "path ", path.Path)
	branch := output.Branch{Text: text}
	if path.VolumeID != "" {
		branch.Branches = append(branch.Branches, output.Branch{Text: "volume " + ShortID(path.VolumeID)})
	}
	branch.Branches = append(branch.Branches, c.marks(path.Warnings)...)
	return branch
}

// marks draws the warnings of an object in the tree. The problems before it have the remedies.
func (c canvas) marks(warnings []Warning) []output.Branch {
	branches := make([]output.Branch, 0, len(warnings))
	for _, w := range warnings {
		branches = append(branches, output.Branch{Text: c.Paint(output.Warning, "! "+string(w.Kind))})
	}
	return branches
}

// maxAffected is how many of the paths of a problem are drawn.
const maxAffected = 4

// problem draws a warning with what it affects and what to do. A command is on its own line, so that it
// is easy to copy.
func (c canvas) problem(w Warning) output.Branch {
	text := w.Text
	if w.Object.Type != warning.Node && w.Object.Type != warning.Mount {
		text = c.shorten(1, w.Object.Name(), "! ", ":") + ": " + text
	}
	lines := []string{c.wrap(1, "! "+text, output.Warning)}
	if w.Object.Type == warning.Mount {
		lines = append(lines, c.affected(w.Object.ID)...)
	}
	for i, name := range w.Affects {
		if i == maxAffected && c.Format != output.Wide {
			lines = append(lines, fmt.Sprintf("  and %d more", len(w.Affects)-i))
			break
		}
		lines = append(lines, c.affected(name)...)
	}
	if w.Run != "" {
		lines = append(lines, gap+c.Paint(output.Bold, w.Run))
	}
	if w.Advice != "" {
		lines = append(lines, c.indented(1, w.Advice, output.Faint))
	}
	return output.Branch{Text: strings.Join(lines, "\n")}
}

// affected draws a path, volume or disk that does not work because of a problem.
func (c canvas) affected(name string) []string {
	if strings.HasPrefix(name, `\\?\Volume{`) {
		return []string{gap + "volume " + ShortID(name)}
	}
	return []string{gap + c.use(1, "", name, gap)}
}

// use draws a path. One of kubelet's shows driver, pod and persistent volume, which matter more than the
// rest of it.
func (c canvas) use(depth int, label, path string, before ...string) string {
	found, ok := kubelet.Parse(path)
	if !ok {
		return label + c.shorten(depth, path, append(before, label)...)
	}
	var line []string
	for _, part := range []struct{ label, name string }{
		{"pod ", found.PodUID}, {"pv ", found.PV}, {"container ", found.Container}, {"driver ", found.Driver},
	} {
		if part.name != "" {
			line = append(line, part.label+part.name)
		}
	}
	if found.Kind != kubelet.Pod {
		line = append([]string{string(found.Kind)}, line...)
	}
	if c.width == 0 {
		return strings.Join(append(line, path), gap)
	}
	return c.shorten(depth, strings.Join(line, gap), before...)
}
