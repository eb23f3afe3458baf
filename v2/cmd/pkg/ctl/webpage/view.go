package webpage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// content is what the template content gets: texts, ready to be shown.
type content struct {
	Name     string // of the machine
	Serial   string // if it is not the name
	Programs string
	Tiles    []tile
	Map      *bar
	Problems []shownProblem
	Rows     []row
	Disks    []card // those with problems first
	Volumes  []card // that are not on one disk
	Shares   []card
	Sessions []card
	Stale    []card
}

// Columns are those of the table.
func (c content) Columns() []string {
	return []string{"Disk", "PV", "Pod", "Driver", "Size", "Use", "State"}
}

// Empty says that there is nothing to show.
func (c content) Empty() bool {
	return len(c.Problems)+len(c.Disks)+len(c.Volumes)+len(c.Shares)+len(c.Sessions)+len(c.Stale) == 0
}

// card is an object as the page shows it. Each kind of object has some of it.
type card struct {
	ID, Name, Size string
	Badges         []badge
	Bar            *bar
	Label          string // of a volume; the serial number of a disk, the target of a link
	Usage          badge
	Details        []string
	Uses           []use
	Disks          []link
	Problems       []badge
	Facts          []fact // of a disk
	Volumes        []card // of a disk
	Partition      string // of a volume that is in one
}

// Problem reports whether a problem is about the object or a volume on it.
func (c card) Problem() bool {
	return len(c.Problems) > 0 || slices.ContainsFunc(c.Volumes, card.Problem)
}

// tone is the class of a thing that is as it should be, or not.
type tone string

const (
	good  tone = "good"
	warn  tone = "warn"
	bad   tone = "bad"
	faint tone = "faint"
)

type tile struct {
	Count      int
	Name, Note string
	Tone       tone
	Target     string // an id
}

type badge struct {
	Text string
	Tone tone
}

type fact struct{ Name, Value string }

type shownProblem struct {
	ID       string
	Kind     string
	Severity string
	Tone     tone
	Object   string
	Target   string // the id of the object, if it is on the page
	Text     string
	Age      string
	Run      string
	Advice   string
	Pods     []string
	PVs      []string
	Affects  []string
}

// row is a volume, or a disk without one, in the table.
type row struct {
	Target                   string
	Disk, PVs, Pods, Drivers string
	Size, State, Use         string
	Bytes                    int64 // to sort by
	Percent                  int
	Tone                     tone
}

// use is a path of a volume or share, and who uses it.
type use struct {
	Kind  string // mount, link, staged, pod, subpath
	Names []string
	Path  string
}

// link leads to something on the page, if it is there.
type link struct{ Text, Target string }

type builder struct {
	content
	node    inventory.Node
	ids     map[string]bool
	objects map[problem.Object]string // ids
	disks   map[string]string         // names of disks, by the id of a volume on them
	pods    map[string]bool
}

func view(node inventory.Node) content {
	node = output.PrintableCopy(node)
	b := &builder{node: node, ids: map[string]bool{}, objects: map[problem.Object]string{}, disks: map[string]string{}, pods: map[string]bool{}}
	b.Name, b.Programs = cmp.Or(node.Host, node.Serial), node.Programs()
	if node.Host != "" {
		b.Serial = node.Serial
	}
	b.Disks = cards(node.GetDisks(), b.disk)
	b.Map = b.nodeMap() // in the order of the disks
	slices.SortStableFunc(b.Disks, func(x, y card) int { return cmp.Compare(first(x), first(y)) })
	b.Volumes = cards(node.Loose(), b.volume)
	b.Shares = cards(node.GetShares(), b.share)
	b.Sessions = cards(node.GetSessions(), b.session)
	b.Stale = cards(node.Stale(), b.stale)
	for _, p := range node.Problems {
		b.addProblem(p)
	}
	for _, r := range node.Rows() {
		b.addRow(r)
	}
	b.tiles(node)
	return b.content
}

// first puts what has a problem before the rest.
func first(c card) int {
	if c.Problem() {
		return 0
	}
	return 1
}

func (b *builder) addRow(r inventory.Row) {
	shown := row{
		Disk: r.Name(), PVs: strings.Join(r.Users.PVs, ", "), Pods: strings.Join(b.node.PodNames(r.Users.Pods), ", "), Drivers: strings.Join(r.Users.Drivers, ", "),
		Size: r.Size, State: r.State, Percent: r.Use, Tone: good,
	}
	object := problem.Object{Type: problem.Volume, ID: r.Volume.GetId()}
	if r.Disk != nil {
		object, shown.Bytes = problem.DiskObject(r.Disk), r.Disk.GetSizeBytes()
	}
	shown.Target = b.objects[object]
	if r.Use >= 0 {
		shown.Use, shown.Bytes = fmt.Sprintf("%d%%", r.Use), r.Volume.GetTotalBytes()
	}
	for _, p := range b.node.Problems { // the most urgent first
		if p.Is(object) || r.Volume != nil && p.Object.ID == r.Volume.GetId() || r.Volume != nil && slices.Contains(p.Affects, r.Volume.GetId()) {
			shown.Tone = toneOf(p.Severity)
			if kind := string(p.Kind); !strings.HasPrefix(r.State, kind) {
				shown.State = strings.TrimSuffix(kind+", "+strings.TrimPrefix(r.State, "?"), ", ")
			}
			break
		}
	}
	b.Rows = append(b.Rows, shown)
}

func toneOf(s problem.Severity) tone {
	switch s {
	case problem.Hurts:
		return bad
	case problem.WillHurt:
		return warn
	default:
		return faint
	}
}

func cards[T any](all []T, show func(T) card) (shown []card) {
	for _, one := range all {
		shown = append(shown, show(one))
	}
	return shown
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

// object returns the id of an object that problems can be about.
func (b *builder) object(object problem.Object) string {
	element := b.id(string(object.Type), object.ID)
	if _, twice := b.objects[object]; !twice {
		b.objects[object] = element
	}
	return element
}

func (b *builder) addProblem(p problem.Problem) {
	name := p.Name()
	if on := b.disks[p.Object.ID]; on != "" && p.Object.Type == problem.Volume {
		name += " on " + on
	}
	if found, ok := kubelet.Parse(p.Object.ID); ok && p.Object.Type == problem.Mount { // its path is long
		name, p.Affects = strings.TrimSuffix(string(found.Kind)+" mount, driver "+found.Driver, ", driver "), append([]string{p.Object.ID}, p.Affects...)
	}
	shown := shownProblem{
		ID: b.id("problem", p.Name()+"\n"+string(p.Kind)+"\n"+p.Text), Kind: string(p.Kind), Severity: p.Severity.Words(), Tone: toneOf(p.Severity), Object: name,
		Target: b.objects[p.Object], Text: p.Text, Age: b.node.Age(p), Run: p.Run, Advice: p.Advice, Pods: b.node.PodNames(p.Pods), PVs: p.PVs,
	}
	for _, affected := range p.Affects {
		shown.Affects = append(shown.Affects, problem.ShortID(affected))
	}
	b.Problems = append(b.Problems, shown)
}

func texts(problems []problem.Problem) (texts []badge) {
	for _, p := range problems {
		texts = append(texts, badge{p.Text, toneOf(p.Severity)})
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
		{"", b.node.PodName(found.PodUID)}, {"container ", found.Container}, {"PV ", found.PV}, {"driver ", found.Driver},
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

func (b *builder) disk(d *extensionv1.Disk) card {
	object := problem.DiskObject(d)
	name := object.Name()
	c := card{
		ID: b.object(object), Name: "Disk" + strings.TrimPrefix(name, "disk"), Size: size(d.SizeBytes), Label: d.GetSerialNumber(),
		Badges: []badge{state(d)}, Problems: texts(b.node.ProblemsOf(d)), Bar: b.diskBar(name, d),
	}
	style := d.GetPartitionStyle()
	if style == "RAW" && len(d.GetPartitions()) == 0 {
		style = "blank"
	}
	for _, word := range []string{style, map[bool]string{true: "Windows"}[d.GetSystem()], d.GetBus()} {
		if word != "" {
			c.Badges = append(c.Badges, badge{word, faint})
		}
	}
	for _, p := range d.GetPartitions() {
		partition := fmt.Sprintf("Partition %d", p.GetNumber())
		v := b.node.Volume(p.GetVolumeId())
		if v == nil {
			c.Details = append(c.Details, strings.TrimSpace(partition+" "+size(p.SizeBytes)+" "+p.GetType()))
			continue
		}
		shown := b.volume(v)
		b.disks[v.GetId()] = name
		shown.Partition, shown.Bar, shown.Disks = partition, nil, nil
		shown.Size = output.Size(p.GetSizeBytes())
		if p.GetType() != "" && p.GetType() != "data" {
			shown.Details = append([]string{p.GetType()}, shown.Details...)
		}
		c.Volumes = append(c.Volumes, shown)
	}
	c.Facts = facts(
		fact{"Model", d.GetModel()}, fact{"Location", d.GetLocation()}, fact{"SCSI address", d.GetScsiAddress()}, fact{"Page 83", d.GetPage83()},
		fact{"NVMe namespace", number(d.GetNvmeNamespaceId())}, fact{"EUI-64", d.GetEui64()}, fact{"NGUID", d.GetNguid()},
		fact{"Offline because", d.GetOfflineReason()}, fact{"Device", d.GetDevice()},
	)
	return c
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

var tones = map[output.Style]tone{output.Good: good, output.Warning: warn, output.Bad: bad}

func state(d *extensionv1.Disk) badge {
	cell := inventory.DiskState(d)
	return badge{cell.Text, cmp.Or(tones[cell.Style], faint)}
}

func size(bytes *int64) string {
	if bytes == nil {
		return "size unknown"
	}
	return output.Size(*bytes)
}

func (b *builder) volume(v *extensionv1.Volume) card {
	c := card{
		ID: b.object(problem.Object{Type: problem.Volume, ID: v.GetId()}), Name: problem.ShortID(v.GetId()), Label: v.GetLabel(),
		Badges: []badge{fileSystem(v)}, Problems: texts(b.node.ProblemsOf(v)),
	}
	if v.TotalBytes != nil && v.UsedBytes != nil {
		c.Usage.Text = fmt.Sprintf("%s of %s used, %d%%", output.Size(v.GetUsedBytes()), output.Size(v.GetTotalBytes()), inventory.Percent(v))
		c.Bar = b.volumeBar(v)
		c.Usage.Tone = b.full(v)
	}
	if v.GetClusterSizeBytes() != 0 {
		c.Details = append(c.Details, "clusters of "+output.Size(int64(v.GetClusterSizeBytes())))
	}
	if v.GetRootAccess() != "" {
		c.Details = append(c.Details, "root access "+v.GetRootAccess())
	}
	if len(v.GetDisks()) > 0 {
		c.Disks = []link{{Text: "on disks " + inventory.Numbers(v.GetDisks())}}
	}
	for _, p := range v.GetMountPaths() {
		c.Uses = append(c.Uses, b.use("mount", p))
	}
	for _, p := range b.node.LinksTo(v) {
		c.Uses = append(c.Uses, b.use("link", p))
	}
	return c
}

func fileSystem(v *extensionv1.Volume) badge {
	switch v.GetState() {
	case extensionv1.VolumeFormatted:
		return badge{cmp.Or(v.GetFileSystem(), "formatted"), faint}
	case inventory.Unknown:
		return badge{"file system unknown", faint}
	case extensionv1.VolumeRaw:
		return badge{"no file system", bad}
	default:
		return badge{v.GetState(), bad}
	}
}

// full returns the colour of a volume that is full; empty if it is not.
func (b *builder) full(v *extensionv1.Volume) tone {
	for _, p := range b.node.ProblemsOf(v) {
		if p.Kind == problem.Full {
			return toneOf(p.Severity)
		}
	}
	return ""
}

func (b *builder) share(s *extensionv1.Share) card {
	c := card{ID: b.object(problem.Object{Type: problem.Share, ID: s.GetRemote()}), Name: s.GetRemote(), Problems: texts(b.node.ProblemsOf(s))}
	status, mapped := badge{s.GetStatus(), good}, inventory.Mapped(s)
	switch {
	case !mapped:
		status.Tone = bad
	case s.GetStatus() != "ok":
		status.Tone = warn
	}
	c.Badges = []badge{status}
	switch {
	case s.Answers == nil:
	case s.GetAnswers():
		c.Badges = append(c.Badges, badge{"answers", good})
	default:
		c.Badges = append(c.Badges, badge{"does not answer", bad})
	}
	for _, cell := range inventory.Access(s) {
		c.Details = append(c.Details, cell.Text)
	}
	if s.GetRemovalWaits() {
		c.Details = append(c.Details, "removal waits for its links")
	}
	for _, p := range s.GetLinks() {
		c.Uses = append(c.Uses, b.use("link", p))
	}
	return c
}

func (b *builder) session(s *extensionv1.Session) card {
	c := card{
		ID: b.object(problem.Object{Type: problem.Session, ID: s.GetTarget()}), Name: s.GetTarget(), Badges: []badge{{"connected", good}},
		Problems: texts(b.node.ProblemsOf(s)),
	}
	if s.GetConnections() == 0 {
		c.Badges = []badge{{"not connected", bad}}
	}
	if s.GetPersistent() {
		c.Details = []string{"Windows connects it again after a restart"}
	}
	for _, number := range s.GetDisks() {
		object := problem.DiskObject(&extensionv1.Disk{Number: &number})
		c.Disks = append(c.Disks, link{object.Name(), b.objects[object]})
	}
	return c
}

func (b *builder) stale(l *extensionv1.Link) card {
	return card{
		ID: b.object(problem.Object{Type: problem.Mount, ID: l.GetPath()}), Uses: []use{b.use("mount", l.GetPath())}, Name: problem.ShortID(l.GetVolumeId()),
		Label: l.GetTarget(), Details: []string{l.GetStale()},
	}
}

func (b *builder) tiles(node inventory.Node) {
	problems := tile{Count: len(b.Problems), Name: "problem", Tone: good, Target: "problems", Note: "none known"}
	if len(b.Problems) > 0 {
		_, note, _ := strings.Cut(node.Summary(), ": ")
		problems.Tone, problems.Note = toneOf(node.Problems[0].Severity), note
	}
	offline := count(node.GetDisks(), func(d *extensionv1.Disk) bool { return d.Online != nil && !d.GetOnline() })
	b.Tiles = []tile{
		problems,
		{Count: len(b.Disks), Name: "disk", Note: some(offline, "offline"), Target: "disks"},
		{Count: len(node.GetVolumes()), Name: "volume", Note: some(count(node.GetVolumes(), func(v *extensionv1.Volume) bool { return b.full(v) != "" }), "almost full"), Target: "table"},
	}
	for i := range b.Tiles {
		if t := &b.Tiles[i]; node.Unlisted(t.Count) {
			t.Note = "not listed: no answer"
		}
	}
	if len(b.pods) > 0 {
		b.Tiles = append(b.Tiles, tile{Count: len(b.pods), Name: "pod", Note: some(problem.PodsHurt(node.Problems), "hurt"), Target: "table"})
	}
	if len(b.Shares) > 0 {
		unmapped := count(node.GetShares(), func(s *extensionv1.Share) bool { return !inventory.Mapped(s) })
		b.Tiles = append(b.Tiles, tile{Count: len(b.Shares), Name: "SMB share", Note: some(unmapped, "not mapped"), Target: "shares"})
	}
	if len(b.Sessions) > 0 {
		dead := count(node.GetSessions(), func(s *extensionv1.Session) bool { return s.GetConnections() == 0 })
		b.Tiles = append(b.Tiles, tile{Count: len(b.Sessions), Name: "iSCSI session", Note: some(dead, "not connected"), Target: "sessions"})
	}
}

// Plural is the name of as many things.
func (t tile) Plural() string {
	if t.Count == 1 {
		return t.Name
	}
	return t.Name + "s"
}

func count[T any](all []T, wanted func(T) bool) (n int) {
	for _, one := range all {
		if wanted(one) {
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
