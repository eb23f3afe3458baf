package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
)

// Find returns what is wrong with a node, the most urgent first.
func Find(node *extensionv1.Node) []Problem { return group(node, find(node)) }

// find is Find with a problem for each object.
func find(node *extensionv1.Node) []Problem {
	f := finder{
		node: node, volumes: map[string]*extensionv1.Volume{}, explained: map[string]bool{}, opens: map[string]bool{},
		since: map[identity]time.Time{}, lasting: map[identity]string{}, limits: Limits{node.GetFullPercent(), node.GetFullBytes()},
	}
	if f.limits == (Limits{}) {
		f.limits = DefaultLimits
	}
	for _, s := range node.GetSince() {
		id := identity{Kind(s.GetKind()), Object{Type(s.GetType()), s.GetId()}}
		f.since[id], f.lasting[id] = time.Unix(s.GetUnix(), 0).UTC(), s.GetLasting()
	}
	for _, v := range node.GetVolumes() {
		f.volumes[v.GetId()] = v
	}
	for _, p := range node.GetProblems() {
		f.add(Problem{Severity: WillHurt, Kind: NoAnswer, Object: Object{Type: Node}, Text: p.GetText(), Advice: "it is not known whether what belongs to it is well; read the daemon's log"})
	}
	// A session explains its disks, a disk its volumes, and a volume its links.
	for _, s := range node.GetSessions() {
		f.session(s)
	}
	for _, d := range node.GetDisks() {
		f.disk(d)
	}
	for _, v := range node.GetVolumes() {
		f.volume(v)
	}
	for _, s := range node.GetShares() {
		f.opens[serverOf(s.GetRemote())] = f.opens[serverOf(s.GetRemote())] || s.GetAnswers()
	}
	for _, s := range node.GetShares() {
		f.share(s)
	}
	if n := len(node.GetShares()); n >= manyMappings {
		f.add(Problem{
			Kind: ManyMappings, Object: Object{Type: Node},
			Text: fmt.Sprintf("%d SMB mappings: Windows is known to refuse more at some 700", n),
		})
	}
	f.unmappedShares()
	f.staleMounts()
	Sort(f.found)
	return f.found
}

type finder struct {
	node    *extensionv1.Node
	volumes map[string]*extensionv1.Volume
	// explained are the ids of volumes, the paths of links and the names of disks that a problem names
	// as affected.
	explained map[string]bool
	opens     map[string]bool // servers of which a share opens
	since     map[identity]time.Time
	lasting   map[identity]string // causes of all looks since a minute ago
	limits    Limits
	found     []Problem
}

func (f *finder) add(p Problem) {
	for _, name := range p.Affects {
		f.explained[name] = true
	}
	id := identity{p.Kind, p.Object}
	if since, known := f.since[id]; known {
		p.Since = &since
	}
	again := p.Cause != "" && f.lasting[id] == p.Cause
	if again {
		p.Advice = cmp.Or(p.Advice, ruleOf(p.Kind, p.Cause).again)
	}
	p = p.complete()
	if p.Kind == NoAnswer && p.Severity == Hurts && p.Cause == silence && !again { // it may only be slow
		p.Severity = WillHurt
	}
	if p.Severity == Note && !f.node.GetLinksSearched() && (p.Kind == Full || !ruleOf(p.Kind, p.Cause).works) { // it is unknown who uses it
		p.Severity = WillHurt
	}
	f.found = append(f.found, p)
}

// complete adds whom a problem hurts, and how much and what helps unless it says so.
func (p Problem) complete() Problem {
	rule := ruleOf(p.Kind, p.Cause)
	if p.Run == "" {
		p.Advice = cmp.Or(p.Advice, rule.advice)
	}
	p.Affects = append([]string{}, p.Affects...)
	p.Pods, p.PVs = []string{}, []string{}
	inUse := false
	for _, name := range append([]string{p.Object.ID}, p.Affects...) {
		path, ok := kubelet.Parse(name)
		inUse = inUse || ok
		p.Pods, p.PVs = insert(p.Pods, path.PodUID), insert(p.PVs, path.PV)
	}
	switch {
	case p.Severity != "":
	case len(p.Pods) > 0 && !rule.works:
		p.Severity = Hurts
	case inUse && p.Kind != Lagging:
		p.Severity = WillHurt
	default:
		p.Severity = cmp.Or(rule.least, Note)
	}
	return p
}

// insert adds a name to a sorted list, once.
func insert(list []string, name string) []string {
	at, known := slices.BinarySearch(list, name)
	if name == "" || known {
		return list
	}
	return slices.Insert(list, at, name)
}

// New returns a problem about what cannot be found in a description.
func New(kind Kind, object Object, text, advice string) Problem {
	return Problem{Kind: kind, Object: object, Text: text, Advice: advice}.complete()
}

func (f *finder) session(s *extensionv1.Session) {
	object := Object{Session, s.GetTarget()}
	for _, failed := range s.GetProblems() {
		f.add(Problem{Kind: NoAnswer, Object: object, Text: failed.GetText(), Cause: causeOf(failed), Advice: "look again in a minute: a session that is new answers later"})
	}
	var text string
	switch {
	case s.GetConnections() == 0 && s.GetPersistent() && len(s.GetDisks()) == 0:
		text = "not connected: Windows tries to log in again"
	case s.GetConnections() == 0:
		text = "not connected: Windows tries to connect again"
	case len(s.GetDisks()) == 0 && len(s.GetProblems()) == 0:
		text = "connected, but it has no disk"
	default:
		return
	}
	p := Problem{Kind: DeadSession, Object: object, Text: text}
	if len(s.GetPortals()) > 0 {
		p.Advice = "check the target, its portal " + strings.Join(s.GetPortals(), ", ") + " and the network"
	}
	for _, d := range f.node.GetDisks() {
		if d.Number != nil && slices.Contains(s.GetDisks(), d.GetNumber()) && Silent(d) {
			p.Affects = append(p.Affects, DiskObject(d).Name())
			p.Affects = append(p.Affects, f.behind(d)...)
		}
	}
	f.add(p)
}

// Silent reports whether a disk answers nothing, or nothing of what is on it.
func Silent(d *extensionv1.Disk) bool {
	nothing := d.SizeBytes == nil && d.Online == nil && d.GetPartitionStyle() == ""
	return nothing || slices.ContainsFunc(d.GetProblems(), func(p *extensionv1.Problem) bool { return p.GetObject() == "content" })
}

// DiskObject is the object of a disk.
func DiskObject(d *extensionv1.Disk) Object {
	if d.Number == nil {
		return Object{Disk, d.GetDevice()}
	}
	return Object{Disk, strconv.FormatUint(uint64(d.GetNumber()), 10)}
}

func (f *finder) disk(d *extensionv1.Disk) {
	object := DiskObject(d)
	if f.explained[object.Name()] {
		return
	}
	var affected []string
	if Silent(d) {
		affected = f.behind(d)
	}
	for _, failed := range d.GetProblems() {
		p := f.noAnswer(object, failed, affected)
		switch nothing := len(affected) == 0 && len(d.GetPartitions()) == 0; {
		case d.GetSystem() && Silent(d): // all pods need it
			p.Severity = Hurts
		case Silent(d) && nothing && d.GetPartitionStyle() == "": // it is unknown what is on it
			p.Severity = WillHurt
		}
		f.add(p)
		affected = nil
	}
	if d.Online != nil && !d.GetOnline() {
		f.offline(d)
	}
	f.diskHealth(d)
	if d.GetReadOnly() {
		p := Problem{Kind: ReadOnly, Object: object, Text: "read-only: writes fail", Affects: f.pathsOn(d), Advice: "first find out who made it read-only, and why"}
		if d.Number == nil || d.GetSystem() {
			p.Advice = "it is the disk of Windows, or its number is unknown: clear the attribute with diskpart"
		} else {
			p.Run = fmt.Sprintf("csi-proxyctl disk writable %d", d.GetNumber())
		}
		f.add(p)
	}
}

// noAnswer is the problem of a disk or volume that fails or does not answer. One look does not say that it hangs: a
// disk that is busy does not answer in time, either.
func (f *finder) noAnswer(object Object, failed *extensionv1.Problem, affects []string) Problem {
	p := Problem{Kind: NoAnswer, Object: object, Text: failed.GetText(), Affects: affects, Cause: causeOf(failed)}
	switch {
	case p.Cause == silence && f.lasting[identity{NoAnswer, object}] == silence:
		p.Text = "it hangs: " + p.Text
	case p.Cause == silence || failed.GetObject() == "":
		p.Text = doesNotAnswer + p.Text
	}
	return p
}

const doesNotAnswer = "it does not answer: "

// behind returns what a disk that is offline or silent keeps from working: its volumes that do not
// answer, and the mounts and links that lead to them.
func (f *finder) behind(d *extensionv1.Disk) []string {
	ids := map[string]bool{}
	for _, p := range d.GetPartitions() {
		if p.GetVolumeId() != "" {
			ids[p.GetVolumeId()] = true
		} else if p.GetId() != "" { // Windows lists no volumes of an offline disk
			ids[`\\?\Volume{`+p.GetId()+`}\`] = true
		}
	}
	var affected []string
	for _, v := range f.node.GetVolumes() {
		if d.Number != nil && slices.Contains(v.GetDisks(), d.GetNumber()) {
			ids[v.GetId()] = true
		}
		if ids[v.GetId()] && (v.GetState() == extensionv1.VolumeUnknown || v.GetState() == extensionv1.VolumeOffline) {
			affected = append(affected, v.GetId())
			affected = append(affected, v.GetMountPaths()...)
		}
	}
	for _, l := range f.node.GetLinks() {
		v := f.volumes[l.GetVolumeId()]
		works := v != nil && v.GetState() != extensionv1.VolumeUnknown && v.GetState() != extensionv1.VolumeOffline
		if ids[l.GetVolumeId()] && !works && !slices.Contains(affected, l.GetPath()) {
			affected = append(affected, l.GetPath())
		}
	}
	return affected
}

// Why a disk is offline, in a description.
const (
	offlineUnknown = "unknown"
	offlinePolicy  = "policy"
)

// offline warns of a disk that is offline and that something needs. Drivers take disks offline before
// they detach them, and Windows keeps new disks offline by its SAN policy until a driver brings them
// online. Such a disk is as it should be: no mount and no link leads to it.
//
// If not all links are known, only a blank disk is certainly not needed. A disk that Windows keeps
// offline because another has its id is never as it should be.
func (f *finder) offline(d *extensionv1.Disk) {
	affected := f.behind(d)
	reason := d.GetOfflineReason()
	collision := reason != "" && reason != offlineUnknown && reason != offlinePolicy
	blank := d.GetPartitionStyle() == "RAW"
	text := "offline: its volumes are not visible"
	switch paths := countPaths(affected); {
	case collision:
		text = "offline (" + reason + "): its volumes are not visible"
	case paths == 1:
		text = "offline: one path leads to it"
	case paths > 1:
		text = fmt.Sprintf("offline: %d paths lead to it", paths)
	case f.allLinksKnown() || blank:
		for _, name := range affected {
			f.explained[name] = true
		}
		return
	}
	p := Problem{Kind: Offline, Object: DiskObject(d), Text: text, Affects: affected}
	if len(affected) == 0 { // what should use it cannot
		p.Severity = WillHurt
	}
	switch {
	case d.Number == nil:
		p.Advice = "its number is unknown: bring it online with diskpart"
	case collision:
		p.Advice = "detach the copy, or give it an id of its own with diskpart, uniqueid disk"
	default:
		p.Run, p.Advice = fmt.Sprintf("csi-proxyctl disk online %d", d.GetNumber()), "if it stays offline, look for the reason in the event log"
	}
	f.add(p)
}

// allLinksKnown reports whether no link can lead to an object besides those of the description.
func (f *finder) allLinksKnown() bool { return f.node.GetLinksSearched() && !f.node.GetLinksFailed() }

func countPaths(names []string) (n int) {
	for _, name := range names {
		if !strings.HasPrefix(name, `\\?\Volume{`) {
			n++
		}
	}
	return n
}

func (f *finder) volume(v *extensionv1.Volume) {
	if f.explained[v.GetId()] {
		return
	}
	object := Object{Volume, v.GetId()}
	affected := f.pathsTo(v)
	warn := func(kind Kind, text string) {
		f.add(Problem{Kind: kind, Object: object, Text: text, Affects: affected})
	}
	for i, failed := range v.GetProblems() {
		affects := affected
		if i > 0 || v.GetState() != extensionv1.VolumeUnknown {
			affects = nil
		}
		f.add(f.noAnswer(object, failed, affects))
	}
	switch v.GetState() {
	case extensionv1.VolumeRaw:
		p := Problem{Kind: Raw, Object: object, Text: "RAW: no file system", Affects: affected}
		if p.complete().Severity != Note {
			p.Advice = "do not format it: stop its pods, detach it and attach it again, and look for errors of its controller; if it stays RAW, restore a snapshot"
		}
		f.add(p)
	case extensionv1.VolumeLocked:
		f.add(Problem{
			Kind: Locked, Object: object, Text: "locked by BitLocker: unlock it to read it", Affects: affected,
			Advice: "in cmd.exe, run manage-bde -unlock " + v.GetId() + " -RecoveryPassword PASSWORD; manage-bde -protectors -get " + v.GetId() + " says which",
		})
	case extensionv1.VolumeOffline:
		warn(Offline, "offline: the volume does not answer")
	default:
	}
	readOnly := v.GetReadOnly()
	if readOnly && !f.onReadOnlyDisk(v) {
		warn(ReadOnly, "read-only: writes fail")
	}
	f.health(v, affected)
	f.space(v, affected)
}

// diskHealth warns of a disk that expects to fail. A disk that does not answer has another problem already.
func (f *finder) diskHealth(d *extensionv1.Disk) {
	if d.GetHealth() != "warning" && d.GetHealth() != "unhealthy" || Silent(d) {
		return
	}
	text := map[string]string{"warning": "Windows says that it is in trouble", "unhealthy": "Windows says that it does not work"}[d.GetHealth()]
	if reason := d.GetHealthReason(); reason != "" {
		text += ": " + reason
	}
	f.add(Problem{Kind: FailingDisk, Object: DiskObject(d), Text: text, Affects: f.pathsOn(d), Cause: d.GetHealth()})
}

// health warns of a volume whose file system is not well.
func (f *finder) health(v *extensionv1.Volume, affected []string) {
	p := Problem{Kind: Damaged, Object: Object{Volume, v.GetId()}, Affects: affected, Advice: RepairAdvice(v)}
	switch {
	case p.Advice == "":
		return
	case isDamage(v.GetDamage()):
		p.Text = "its file system has noted damage: " + v.GetDamage()
	default:
		p.Kind, p.Text = Dirty, "dirty: it was not unmounted properly, and may be damaged"
	}
	if slices.ContainsFunc(f.node.GetDisks(), func(d *extensionv1.Disk) bool {
		return d.GetSystem() && d.Number != nil && slices.Contains(v.GetDisks(), d.GetNumber())
	}) {
		p.Advice = "it is on the system disk, which Windows checks at the next start; until then " + repairCommand(v, scanNeeded)
	}
	f.add(p)
}

// drive names the drive of a volume, if it has one, at the beginning of a text.
func drive(v *extensionv1.Volume) string {
	for _, path := range v.GetMountPaths() {
		if isDrive(path) {
			return path + " is "
		}
	}
	return ""
}

func isDrive(path string) bool { return len(path) <= len(`C:\`) }

func (f *finder) pathsTo(v *extensionv1.Volume) []string {
	paths := slices.Clone(v.GetMountPaths())
	for _, l := range f.node.GetLinks() {
		broken := l.GetStale() != "" && v.GetState() == extensionv1.VolumeFormatted // for a reason of its own
		if l.GetVolumeId() == v.GetId() && !broken && !slices.Contains(paths, l.GetPath()) {
			paths = append(paths, l.GetPath())
		}
	}
	return paths
}

// pathsOn returns the mounts and links that lead to volumes on a disk.
func (f *finder) pathsOn(d *extensionv1.Disk) (paths []string) {
	for _, v := range f.node.GetVolumes() {
		if d.Number != nil && slices.Contains(v.GetDisks(), d.GetNumber()) {
			paths = append(paths, f.pathsTo(v)...)
		}
	}
	return slices.DeleteFunc(paths, isDrive)
}

func (f *finder) onReadOnlyDisk(v *extensionv1.Volume) bool {
	return slices.ContainsFunc(f.node.GetDisks(), func(d *extensionv1.Disk) bool {
		return d.Number != nil && slices.Contains(v.GetDisks(), d.GetNumber()) && d.GetReadOnly()
	})
}

// share warns of a mapping that does not work, or that links need and Windows has disconnected. It also disconnects
// mappings that are idle, and connects them when a pod opens them: only opening a share of the server distinguishes these.
func (f *finder) share(s *extensionv1.Share) {
	object, status := Object{Share, s.GetRemote()}, s.GetStatus()
	p := Problem{Kind: DeadShare, Object: object, Text: "Windows says: " + status, Affects: s.GetLinks()}
	if len(s.GetProblems()) > 0 {
		p.Cause = causeOf(s.GetProblems()[0])
	}
	p.Advice = strings.Replace(ruleOf(p.Kind, cmp.Or(p.Cause, failure)).advice, "MAP", mapAgain(s.GetRemote(), s.GetUser()), 1)
	switch {
	case s.Answers != nil && !s.GetAnswers():
		if p.Cause == silence {
			p.Text = doesNotAnswer + s.GetProblems()[0].GetText()
		} else if p.Cause != "" {
			p.Text = "it does not open: " + s.GetProblems()[0].GetText()
		}
		f.add(p)
	case s.Answers == nil && (status == "network error" || status == "unavailable"):
		f.add(p)
	case s.Answers == nil && status == "disconnected" && len(s.GetLinks()) > 0 && !f.opens[serverOf(s.GetRemote())]:
		p.Severity = WillHurt
		p.Text += ", because its server is gone or because it was idle"
		p.Advice = "find out with csi-proxyctl smb list --ask, which opens it; then " + p.Advice
		f.add(p)
	case len(s.GetProblems()) > 0:
		for _, failed := range s.GetProblems() {
			p := Problem{Kind: NoAnswer, Object: object, Text: failed.GetText(), Cause: causeOf(failed), Advice: "look again in a minute, or read the daemon's log"}
			if failed.GetObject() == "" {
				p.Text, p.Affects = doesNotAnswer+p.Text, s.GetLinks()
				p.Advice = "look again in a minute: if its server is only slow, it answers then"
			}
			f.add(p)
		}
	}
	if s.GetRemovalWaits() && f.allLinksKnown() && len(s.GetLinks()) == 0 {
		p = Problem{Kind: WaitingRemoval, Object: object, Text: "a driver has unmapped it, no link uses it, and it is still mapped", Run: command("smb unmap", s.GetRemote())}
		f.add(p)
	}
}

// manyMappings is how many mappings are many. Creating one fails for want of memory or quota at some 700
// (github.com/kubernetes-sigs/azurefile-csi-driver/issues/1925).
const manyMappings = 500

// serverOf returns the server of a share.
func serverOf(share string) string {
	server, _, _ := strings.Cut(strings.TrimLeft(strings.ToLower(share), `\`), `\`)
	return server
}

// mapAgain is the command that maps a share again. Names that are not safe to copy stay out of it.
func mapAgain(share, user string) string {
	line := command("smb map", share)
	if line == "" {
		line = "csi-proxyctl smb map SHARE"
	}
	if user = strings.TrimPrefix(command("", user), "csi-proxyctl  "); user == "" {
		user = "USER"
	}
	return line + " --user " + user
}

// unmappedShares warns of shares that links lead into and that are not mapped.
func (f *finder) unmappedShares() {
	var shares []string
	links := map[string][]*extensionv1.Link{}
	for _, l := range f.node.GetLinks() {
		if share := l.GetShare(); share != "" {
			if links[share] == nil {
				shares = append(shares, share)
			}
			links[share] = append(links[share], l)
		}
	}
	for _, share := range shares {
		p := Problem{
			Kind: DeadShare, Object: Object{Share, share}, Text: fmt.Sprintf("not mapped, but links lead into it (%d)", len(links[share])),
			Advice: "map it again with " + mapAgain(share, ""),
		}
		for _, l := range links[share] {
			p.Affects = append(p.Affects, l.GetPath())
			p.heal(l)
		}
		f.add(p)
	}
}

// heal adds what the daemon's healer said last of a staging link.
func (p *Problem) heal(l *extensionv1.Link) {
	switch l.GetState() {
	case extensionv1.StaleRemovable:
		p.Run = "csi-proxyctl node heal"
	case extensionv1.StaleKept:
		p.Text += "; kept: " + l.GetReason()
	}
}

// staleMounts warns of links that lead nowhere and that no other problem explains. Links to the same
// volume or target are one problem.
func (f *finder) staleMounts() {
	var causes []string
	links := map[string][]*extensionv1.Link{}
	for _, l := range f.node.GetLinks() {
		if l.GetStale() == "" && l.GetProblem() == nil || f.explained[l.GetPath()] {
			continue
		}
		if l.GetStale() == "" { // it may be well
			f.add(Problem{Kind: NoAnswer, Object: Object{Mount, l.GetPath()}, Text: l.GetProblem().GetText(), Cause: causeOf(l.GetProblem()), Advice: "look at the disk or server that it leads to, and keep it: what does not answer is not gone"})
			continue
		}
		cause := l.GetTarget()
		if cause == "" {
			cause = l.GetVolumeId()
		}
		if cause == "" {
			cause = l.GetPath()
		}
		if links[cause] == nil {
			causes = append(causes, cause)
		}
		links[cause] = append(links[cause], l)
	}
	for _, cause := range causes {
		f.staleMount(links[cause])
	}
}

// mayHide reports whether a volume that Windows does not list may still exist. The partitions of a GPT name their volumes.
func (f *finder) mayHide() bool {
	return len(f.node.GetProblems()) > 0 || slices.ContainsFunc(f.node.GetDisks(), func(d *extensionv1.Disk) bool {
		return Silent(d) || d.Online != nil && !d.GetOnline() && d.GetPartitionStyle() != "GPT" && d.GetPartitionStyle() != "RAW"
	})
}

// staleMount warns of links with the same cause. The one that kubelet staged first stands for all:
// the others lead to it.
func (f *finder) staleMount(links []*extensionv1.Link) {
	staged := slices.IndexFunc(links, func(l *extensionv1.Link) bool {
		path, ok := kubelet.Parse(l.GetPath())
		return ok && path.Kind == kubelet.Staging
	})
	first := links[max(staged, 0)]
	p := Problem{Kind: StaleMount, Object: Object{Mount, first.GetPath()}, Text: "stale: " + first.GetStale()}
	if first.GetTarget() != "" {
		p.Text += "; it leads to " + first.GetTarget()
	}
	for _, l := range links {
		if l != first {
			p.Affects = append(p.Affects, l.GetPath())
		}
	}
	if staged >= 0 {
		p.heal(first)
		switch p.Advice = "attach its disk again"; first.GetState() {
		case extensionv1.StaleRemovable:
			p.Advice = "or attach its disk again, if the volume still exists"
		case extensionv1.StaleKept:
			p.Advice += ", or end what keeps it: then csi-proxyctl node heal removes it"
		default:
			p.Advice += "; if the volume is gone for good, csi-proxyctl node heal says whether the mount can go"
		}
	} else if first.GetTarget() == "" && f.mayHide() {
		p.Advice = "keep it: a disk that does not answer or is offline may have its volume; look at that disk first"
	} else if p.Run = command("fs rmdir", first.GetPath()); p.Run != "" {
		p.Advice = "only if no pod needs it; kubelet removes the links of pods that end"
	} else {
		p.Advice = "remove it with csi-proxyctl fs rmdir if no pod needs it; its name is not safe to copy into a command"
	}
	f.add(p)
}
