package inventory

import (
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// Draw returns the node as a tree.
func (n Node) Draw(p *output.Printer) string {
	volumes, warnings := 0, len(n.Warnings)
	for _, disk := range n.Disks {
		volumes += len(disk.Volumes)
		warnings += len(disk.Warnings)
		for _, volume := range disk.Volumes {
			warnings += len(volume.Warnings)
		}
	}
	for _, path := range n.Paths {
		warnings += len(path.Warnings)
	}
	title := p.Paint(output.Bold, strings.TrimSpace("node "+n.Serial))
	summary := fmt.Sprintf("  %s, %s, ", count(len(n.Disks), "disk"), count(volumes, "volume"))
	if warnings > 0 {
		summary += p.Paint(output.Warning, count(warnings, "warning"))
	} else {
		summary += "no warnings"
	}
	root := output.Branch{Text: title + summary, Branches: warn(p, n.Warnings)}
	for _, disk := range n.Disks {
		root.Branches = append(root.Branches, disk.draw(p, n.Paths))
	}
	for _, path := range n.Paths {
		if path.VolumeID == "" || !n.has(path.VolumeID) {
			root.Branches = append(root.Branches, path.draw(p))
		}
	}
	return p.Tree(root)
}

func (n Node) has(volumeID string) bool {
	for _, disk := range n.Disks {
		for _, volume := range disk.Volumes {
			if volume.ID == volumeID {
				return true
			}
		}
	}
	return false
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func warn(p *output.Printer, warnings []string) []output.Branch {
	branches := make([]output.Branch, 0, len(warnings))
	for _, warning := range warnings {
		branches = append(branches, output.Branch{Text: p.Paint(output.Warning, "! "+warning)})
	}
	return branches
}

func (d Disk) draw(p *output.Printer, paths []Path) output.Branch {
	state := p.Paint(output.Faint, "state ?")
	if d.Online != nil {
		state = StateCell(*d.Online).Text
		state = p.Paint(StateCell(*d.Online).Style, state)
	}
	parts := []string{p.Paint(output.Bold, fmt.Sprintf("disk %d", d.Number)), size(d.SizeBytes), state}
	if d.SerialNumber != "" {
		parts = append(parts, "serial "+d.SerialNumber)
	}
	if p.Format == output.Wide {
		parts = append(parts, p.Paint(output.Faint, "page83 "+orDash(d.Page83)), p.Paint(output.Faint, "at "+orDash(d.Location)))
	}
	branch := output.Branch{Text: strings.Join(parts, "  ")}
	for _, volume := range d.Volumes {
		branch.Branches = append(branch.Branches, volume.draw(p, paths))
	}
	branch.Branches = append(branch.Branches, warn(p, d.Warnings)...)
	return branch
}

// StateCell is the state of a disk with its colour.
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

func (v Volume) draw(p *output.Printer, paths []Path) output.Branch {
	partition := "partition ?"
	if v.Partition > 0 {
		partition = fmt.Sprintf("partition %d", v.Partition)
	}
	id := v.ID
	if p.Format != output.Wide {
		id = ShortID(id)
	}
	text := partition + "  volume " + id
	if v.TotalBytes != nil && v.UsedBytes != nil {
		text += "  " + usage(p, *v.UsedBytes, *v.TotalBytes)
	}
	branch := output.Branch{Text: text}
	for _, path := range v.MountPaths {
		branch.Branches = append(branch.Branches, output.Branch{Text: "mounted at " + path})
	}
	for _, path := range paths {
		if path.VolumeID == v.ID {
			verb := "holds "
			if path.Leads {
				verb = "reached by "
			}
			branch.Branches = append(branch.Branches, output.Branch{Text: verb + path.Path, Branches: warn(p, path.Warnings)})
		}
	}
	branch.Branches = append(branch.Branches, warn(p, v.Warnings)...)
	return branch
}

// ShortID is the id of a volume without what all ids have in common. Commands take it, too.
func ShortID(id string) string {
	short, ok := strings.CutPrefix(id, `\\?\Volume{`)
	if !ok {
		return id
	}
	return strings.TrimSuffix(short, `}\`)
}

// barWidth is how many characters a full bar has.
const barWidth = 10

// usage is a bar, and the numbers.
func usage(p *output.Printer, used, total int64) string {
	share := 0.0
	if total > 0 {
		share = float64(used) / float64(total)
	}
	full := min(barWidth, int(share*barWidth+0.5))
	style := output.Good
	if share > 0.9 {
		style = output.Warning
	}
	bar := p.Paint(style, strings.Repeat("█", full)) + p.Paint(output.Faint, strings.Repeat("░", barWidth-full))
	return fmt.Sprintf("%s %.0f%% of %s", bar, share*100, output.Size(total))
}

func (path Path) draw(p *output.Printer) output.Branch {
	text := "path " + path.Path
	if path.VolumeID != "" {
		text += "  volume " + ShortID(path.VolumeID)
	}
	return output.Branch{Text: text, Branches: warn(p, path.Warnings)}
}
