package webpage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/kubelet"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/warning"
)

// content is what the template content gets: texts, ready to be shown.
type content struct {
	Serial   string
	Tiles    []tile
	Map      *bar
	Problems []problem
	Disks    []disk
	Volumes  []volume // that are not on one disk
	Shares   []share
	Sessions []session
	Stale    []stale
	Paths    []path
}

// Empty says that there is nothing to show.
func (c content) Empty() bool {
	return len(c.Problems)+len(c.Disks)+len(c.Volumes)+len(c.Shares)+len(c.Sessions)+len(c.Stale)+len(c.Paths) == 0
}

// tone is the class of a thing that is as it should be, or not.
type tone string

const (
	good  tone = "good"
	warn  tone = "warn"
	bad   tone = "bad"
	faint tone = "faint"
)

// tile is a number at the top of the page.
type tile struct {
	Count      int
	Name, Note string
	Tone       tone
	Target     string // an id
}

// badge is a word with a colour.
type badge struct {
	Text string
	Tone tone
}

// fact is a line of a list of identifiers.
type fact struct{ Name, Value string }

type problem struct {
	ID      string
	Kind    string
	Tone    tone
	Object  string
	Target  string // the id of the object, if it is on the page
	Text    string
	Run     string
	Advice  string
	Pods    []string
	Affects []string
}

type disk struct {
	ID       string
	Name     string
	Size     string
	Badges   []badge
	Serial   string
	Bar      *bar
	Warnings []string
	Parts    []part
	Volumes  []volume
	Facts    []fact
}

// Problem reports whether a warning is about the disk or a volume on it.
func (d disk) Problem() bool {
	return len(d.Warnings) > 0 || slices.ContainsFunc(d.Volumes, func(v volume) bool { return len(v.Warnings) > 0 })
}

// part is a partition without a volume.
type part struct{ Name, Size, Type string }

type volume struct {
	ID         string
	Name       string
	Partition  string // its name, if it is in one
	Size       string
	FileSystem badge
	Label      string
	Usage      string
	UsageTone  tone
	Bar        *bar
	Details    []string
	Disks      string
	Paths      []use
	Warnings   []string
}

// use is a path of a volume or share, and who uses it.
type use struct {
	Kind  string // mount, link, staged, pod, subpath
	Names []string
	Path  string
}

type share struct {
	ID       string
	Remote   string
	Badges   []badge
	Details  []string
	Links    []use
	Warnings []string
}

type session struct {
	ID       string
	Target   string
	Badges   []badge
	Details  []string
	Disks    []link
	Warnings []string
}

// link leads to something on the page, if it is there.
type link struct{ Text, Target string }

type stale struct {
	ID     string
	Use    use
	Volume string
	Target string
	Reason string
}

type path struct {
	ID, Path, Volume string
	Warnings         []string
}

// builder collects the content of a page.
type builder struct {
	content
	ids     map[string]bool
	objects map[warning.Object]string // ids
	disks   map[string]string         // names of disks, by the id of a volume on them
	pods    map[string]bool
}

func view(node inventory.Node) content {
	node = output.PrintableCopy(node)
	b := &builder{ids: map[string]bool{}, objects: map[warning.Object]string{}, disks: map[string]string{}, pods: map[string]bool{}}
	b.Serial = node.Serial
	for _, d := range node.Disks {
		b.addDisk(d)
	}
	for _, v := range node.Volumes {
		b.Volumes = append(b.Volumes, b.volume(v))
	}
	for _, s := range node.Shares {
		b.addShare(s)
	}
	for _, s := range node.Sessions {
		b.addSession(s)
	}
	for _, s := range node.StaleMounts {
		b.addStale(s)
	}
	for _, p := range node.Paths {
		b.addPath(p)
	}
	for _, w := range node.Problems {
		b.addProblem(w)
	}
	b.Map = nodeMap(node.Disks, b.Disks)
	b.tiles(node)
	return b.content
}

// id returns an id that no other element has. It contains no character of the name, which may be
// hostile.
func (b *builder) id(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	id := kind + "-" + hex.EncodeToString(sum[:6])
	for n, free := 2, id; b.ids[id]; n++ {
		id = fmt.Sprintf("%s-%d", free, n)
	}
	b.ids[id] = true
	return id
}

// object returns the id of an object that warnings can be about.
func (b *builder) object(kind warning.Type, id string) string {
	object := warning.Object{Type: kind, ID: id}
	element := b.id(string(kind), id)
	if _, twice := b.objects[object]; !twice {
		b.objects[object] = element
	}
	return element
}

// urgent are the kinds of warnings about storage that does not work now.
var urgent = []warning.Kind{
	warning.NoAnswer, warning.Offline, warning.DeadSession, warning.DeadShare, warning.StaleMount, warning.Locked, warning.Raw, warning.ReadOnly,
}

func (b *builder) addProblem(w warning.Warning) {
	name := w.Object.Name()
	if on := b.disks[w.Object.ID]; on != "" && w.Object.Type == warning.Volume {
		name += " on " + on
	}
	p := problem{
		ID: b.id("problem", name+"\n"+string(w.Kind)+"\n"+w.Text), Kind: string(w.Kind), Tone: warn, Object: name,
		Target: b.objects[w.Object], Text: w.Text, Run: w.Run, Advice: w.Advice,
	}
	if slices.Contains(urgent, w.Kind) {
		p.Tone = bad
	}
	for _, affected := range w.Affects {
		p.Affects = append(p.Affects, warning.ShortID(affected))
		if found, ok := kubelet.Parse(affected); ok && found.PodUID != "" && !slices.Contains(p.Pods, found.PodUID) {
			p.Pods = append(p.Pods, found.PodUID)
		}
	}
	b.Problems = append(b.Problems, p)
}

// texts returns the texts of warnings.
func texts(warnings []warning.Warning) (texts []string) {
	for _, w := range warnings {
		texts = append(texts, w.Text)
	}
	return texts
}

// use reads from a path who uses it. The kind is that of paths that kubelet did not choose.
func (b *builder) use(kind, path string) use {
	found, ok := kubelet.Parse(path)
	if !ok {
		return use{Kind: kind, Path: path}
	}
	u := use{Kind: string(found.Kind), Path: path}
	for _, name := range []struct{ what, name string }{
		{"", found.PodUID}, {"container ", found.Container}, {"PV ", found.PV}, {"driver ", found.Driver},
	} {
		if name.name != "" {
			u.Names = append(u.Names, name.what+name.name)
		}
	}
	if found.PodUID != "" {
		b.pods[found.PodUID] = true
	}
	return u
}

func (b *builder) addDisk(d inventory.Disk) {
	name := d.Name()
	id := d.Device
	if d.Number != nil {
		id = fmt.Sprint(*d.Number)
	}
	v := disk{ID: b.object(warning.Disk, id), Name: "Disk" + strings.TrimPrefix(name, "disk"), Size: size(d.SizeBytes), Serial: d.SerialNumber}
	v.Badges = append(v.Badges, state(d))
	switch {
	case d.Style == "RAW" && len(d.Partitions) == 0:
		v.Badges = append(v.Badges, badge{"blank", faint})
	case d.Style != "":
		v.Badges = append(v.Badges, badge{d.Style, faint})
	}
	if d.System {
		v.Badges = append(v.Badges, badge{"Windows", faint})
	}
	if d.Bus != "" {
		v.Badges = append(v.Badges, badge{d.Bus, faint})
	}
	v.Warnings = texts(d.Warnings)
	v.Bar = diskBar(name, d)
	for _, p := range d.Partitions {
		partition := "Partition ?"
		if p.Number > 0 {
			partition = fmt.Sprintf("Partition %d", p.Number)
		}
		if p.Volume == nil {
			v.Parts = append(v.Parts, part{partition, size(p.SizeBytes), p.Type})
			continue
		}
		shown := b.volume(*p.Volume)
		b.disks[p.Volume.ID] = name
		shown.Partition, shown.Bar, shown.Disks = partition, nil, ""
		if p.SizeBytes != nil {
			shown.Size = output.Size(*p.SizeBytes)
		}
		if p.Type != "" && p.Type != "data" {
			shown.Details = append([]string{p.Type}, shown.Details...)
		}
		v.Volumes = append(v.Volumes, shown)
	}
	v.Facts = facts(
		fact{"Model", d.Model}, fact{"Location", d.Location}, fact{"SCSI address", d.SCSIAddress}, fact{"Page 83", d.Page83},
		fact{"NVMe namespace", number(d.NVMeNamespaceID)}, fact{"EUI-64", d.EUI64}, fact{"NGUID", d.NGUID},
		fact{"Offline because", d.OfflineReason}, fact{"Device", cmp.Or(d.Path, d.Device)},
	)
	b.Disks = append(b.Disks, v)
}

func facts(all ...fact) []fact {
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func number(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func state(d inventory.Disk) badge {
	switch {
	case d.Online == nil:
		return badge{"state unknown", faint}
	case !*d.Online:
		return badge{"offline", bad}
	case d.ReadOnly != nil && *d.ReadOnly:
		return badge{"read-only", bad}
	default:
		return badge{"online", good}
	}
}

func size(bytes *int64) string {
	if bytes == nil {
		return "size unknown"
	}
	return output.Size(*bytes)
}

func (b *builder) volume(v inventory.Volume) volume {
	shown := volume{ID: b.object(warning.Volume, v.ID), Name: warning.ShortID(v.ID), Label: v.Label, FileSystem: fileSystem(v)}
	if v.TotalBytes != nil && v.UsedBytes != nil {
		shown.Usage = fmt.Sprintf("%s of %s used, %s", output.Size(*v.UsedBytes), output.Size(*v.TotalBytes), percent(*v.UsedBytes, *v.TotalBytes))
		shown.Bar = volumeBar(v)
		if full(v) {
			shown.UsageTone = warn
		}
	}
	if v.ClusterSizeBytes != 0 {
		shown.Details = append(shown.Details, "clusters of "+output.Size(int64(v.ClusterSizeBytes)))
	}
	if v.RootAccess != "" {
		shown.Details = append(shown.Details, "root access "+v.RootAccess)
	}
	if len(v.Disks) > 0 {
		shown.Disks = "on disks " + strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Disks), " ", ", "), "[]")
	}
	for _, p := range v.MountPaths {
		shown.Paths = append(shown.Paths, b.use("mount", p))
	}
	for _, p := range v.Links {
		shown.Paths = append(shown.Paths, b.use("link", p))
	}
	shown.Warnings = texts(v.Warnings)
	return shown
}

func fileSystem(v inventory.Volume) badge {
	switch v.State {
	case extensionv1.VolumeFormatted:
		return badge{cmp.Or(v.FileSystem, "formatted"), faint}
	case inventory.Unknown:
		return badge{"file system unknown", faint}
	case extensionv1.VolumeRaw:
		return badge{"no file system", bad}
	default:
		return badge{v.State, bad}
	}
}

// percent rounds down, as warnings do: only what has no room left is 100% full.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%d%%", int64(float64(part)/float64(whole)*100))
}

func full(v inventory.Volume) bool {
	return v.TotalBytes != nil && v.UsedBytes != nil && *v.UsedBytes > *v.TotalBytes/10*9
}

func (b *builder) addShare(s inventory.Share) {
	v := share{ID: b.object(warning.Share, s.Remote), Remote: s.Remote}
	status := badge{s.Status, good}
	switch {
	case !s.Mapped:
		status.Tone = bad
	case s.Status != "ok":
		status.Tone = warn
	}
	v.Badges = append(v.Badges, status)
	if s.Answers != nil {
		if *s.Answers {
			v.Badges = append(v.Badges, badge{"answers", good})
		} else {
			v.Badges = append(v.Badges, badge{"does not answer", bad})
		}
	}
	switch {
	case !s.Mapped:
	case s.User == nil:
		v.Details = append(v.Details, "user unknown")
	case *s.User == "":
		v.Details = append(v.Details, "guest")
	default:
		v.Details = append(v.Details, "user "+*s.User)
	}
	switch {
	case !s.Mapped:
	case s.Private == nil:
		v.Details = append(v.Details, "encryption unknown")
	case *s.Private:
		v.Details = append(v.Details, "encrypted")
	default:
		v.Details = append(v.Details, "not encrypted")
	}
	if s.RemovalWaits != nil && *s.RemovalWaits {
		v.Details = append(v.Details, "removal waits for its links")
	}
	for _, p := range s.Links {
		v.Links = append(v.Links, b.use("link", p))
	}
	v.Warnings = texts(s.Warnings)
	b.Shares = append(b.Shares, v)
}

func (b *builder) addSession(s inventory.Session) {
	v := session{ID: b.object(warning.Session, s.Target), Target: s.Target, Warnings: texts(s.Warnings)}
	if s.Connections == 0 {
		v.Badges = append(v.Badges, badge{"not connected", bad})
	} else {
		v.Badges = append(v.Badges, badge{"connected", good})
	}
	if s.Persistent {
		v.Details = append(v.Details, "Windows connects it again after a restart")
	}
	for _, number := range s.Disks {
		id := fmt.Sprint(number)
		v.Disks = append(v.Disks, link{"disk " + id, b.objects[warning.Object{Type: warning.Disk, ID: id}]})
	}
	b.Sessions = append(b.Sessions, v)
}

func (b *builder) addStale(s inventory.StaleMount) {
	b.Stale = append(b.Stale, stale{b.object(warning.Mount, s.Path), b.use("mount", s.Path), warning.ShortID(s.VolumeID), s.Target, s.Reason})
}

func (b *builder) addPath(p inventory.Path) {
	b.Paths = append(b.Paths, path{b.object(warning.Path, p.Path), p.Path, warning.ShortID(p.VolumeID), texts(p.Warnings)})
}

// tiles adds the numbers at the top.
func (b *builder) tiles(node inventory.Node) {
	problems := tile{Count: len(b.Problems), Name: "problems", Tone: good, Target: "problems", Note: "none known"}
	if len(b.Problems) > 0 {
		problems.Tone, problems.Note = warn, ""
		if urgent := count(b.Problems, func(p problem) bool { return p.Tone == bad }); urgent > 0 {
			problems.Tone, problems.Note = bad, fmt.Sprintf("%d urgent", urgent)
		}
	}
	offline := count(node.Disks, func(d inventory.Disk) bool { return d.Online != nil && !*d.Online })
	volumes, fullOnes := len(b.Volumes), count(node.Volumes, full)
	for _, d := range node.Disks {
		for _, p := range d.Partitions {
			if p.Volume != nil {
				volumes++
				if full(*p.Volume) {
					fullOnes++
				}
			}
		}
	}
	b.Tiles = []tile{
		problems,
		{Count: len(b.Disks), Name: "disks", Note: some(offline, "offline"), Target: "disks"},
		{Count: volumes, Name: "volumes", Note: some(fullOnes, "more than 90% full"), Target: "disks"},
	}
	if len(b.pods) > 0 {
		b.Tiles = append(b.Tiles, tile{Count: len(b.pods), Name: "pods", Target: "disks"})
	}
	if len(b.Shares) > 0 {
		unmapped := count(node.Shares, func(s inventory.Share) bool { return !s.Mapped })
		b.Tiles = append(b.Tiles, tile{Count: len(b.Shares), Name: "SMB shares", Note: some(unmapped, "not mapped"), Target: "shares"})
	}
	if len(b.Sessions) > 0 {
		dead := count(node.Sessions, func(s inventory.Session) bool { return s.Connections == 0 })
		b.Tiles = append(b.Tiles, tile{Count: len(b.Sessions), Name: "iSCSI sessions", Note: some(dead, "not connected"), Target: "sessions"})
	}
}

func count[T any](all []T, is func(T) bool) (n int) {
	for _, one := range all {
		if is(one) {
			n++
		}
	}
	return n
}

func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}
