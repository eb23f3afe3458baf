package warning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/kubelet"
)

// Find returns what is wrong with a node, the most urgent first. A description that comes from the
// published API lacks values; then Find judges by what is there. In it, a partition of unknown size has
// the size 0.
func Find(node *extensionv1.Node) []Warning {
	f := finder{
		node: node, volumes: map[string]*extensionv1.Volume{}, explained: map[string]bool{},
		since: map[problem]time.Time{}, limits: Limits{node.GetFullPercent(), node.GetFullBytes()},
	}
	if f.limits == (Limits{}) {
		f.limits = DefaultLimits
	}
	for _, s := range node.GetSince() {
		f.since[problem{Kind(s.GetKind()), Object{Type(s.GetType()), s.GetId()}}] = time.Unix(s.GetUnix(), 0).UTC()
	}
	for _, v := range node.GetVolumes() {
		f.volumes[v.GetId()] = v
	}
	for _, text := range node.GetProblems() {
		f.add(Warning{Severity: WillHurt, Kind: NoAnswer, Object: Object{Type: Node}, Text: text, Advice: "it is not known whether what belongs to it is well; read the daemon's log"})
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
		f.share(s)
	}
	if n := len(node.GetShares()); n >= manyMappings {
		f.add(Warning{
			Severity: WillHurt, Kind: ManyMappings, Object: Object{Type: Node},
			Text:   fmt.Sprintf("%d SMB mappings: Windows is known to refuse more at some 700", n),
			Advice: "unmap shares that no link uses with csi-proxyctl smb unmap SHARE, or move pods to another node",
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
	// explained are the ids of volumes, the paths of links and the names of disks that a warning names
	// as affected.
	explained map[string]bool
	since     map[problem]time.Time
	limits    Limits
	found     []Warning
}

func (f *finder) add(w Warning) {
	for _, name := range w.Affects {
		f.explained[name] = true
	}
	if since, known := f.since[problem{w.Kind, w.Object}]; known {
		w.Since = &since
	}
	if w = w.complete(); w.Severity == Note && !f.node.GetLinksSearched() && (w.Kind == Full || !w.Kind.works()) { // it is unknown who uses it
		w.Severity = WillHurt
	}
	f.found = append(f.found, w)
}

// complete adds whom a warning hurts, and how much unless it says so.
func (w Warning) complete() Warning {
	w.Affects = append([]string{}, w.Affects...)
	w.Pods, w.PVs = []string{}, []string{}
	inUse := false
	for _, name := range append([]string{w.Object.ID}, w.Affects...) {
		path, ok := kubelet.Parse(name)
		inUse = inUse || ok
		for list, name := range map[*[]string]string{&w.Pods: path.PodUID, &w.PVs: path.PV} {
			if at, known := slices.BinarySearch(*list, name); name != "" && !known {
				*list = slices.Insert(*list, at, name)
			}
		}
	}
	switch {
	case w.Severity != "":
	case len(w.Pods) > 0 && !w.Kind.works():
		w.Severity = Hurts
	case inUse && w.Kind != Lagging:
		w.Severity = WillHurt
	default:
		w.Severity = Note
	}
	return w
}

// works reports whether what has a problem of this kind can be used, at least for reading.
func (k Kind) works() bool {
	return slices.Contains([]Kind{FailingDisk, Damaged, Dirty, Full, ReadOnly, Lagging, WaitingRemoval, Unseen, Unsuitable}, k)
}

// New returns a warning about what cannot be found in a description.
func New(kind Kind, object Object, text, advice string) Warning {
	return Warning{Kind: kind, Object: object, Text: text, Advice: advice}.complete()
}

func (f *finder) session(s *extensionv1.Session) {
	object := Object{Session, s.GetTarget()}
	for _, text := range s.GetProblems() {
		f.add(Warning{Kind: NoAnswer, Object: object, Text: text, Advice: "look again in a minute: a session that is new answers later"})
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
	w := Warning{Severity: WillHurt, Kind: DeadSession, Object: object, Text: text, Advice: "check the target, its portal and the network"}
	for _, d := range f.node.GetDisks() {
		if d.Number != nil && slices.Contains(s.GetDisks(), d.GetNumber()) && silent(d) {
			w.Affects = append(w.Affects, DiskObject(d).Name())
			w.Affects = append(w.Affects, f.behind(d)...)
		}
	}
	if len(w.complete().Pods) > 0 {
		w.Severity = Hurts
	}
	f.add(w)
}

// silent reports whether a disk answers nothing, or nothing of what is on it.
func silent(d *extensionv1.Disk) bool {
	nothing := d.SizeBytes == nil && d.Online == nil && d.GetPartitionStyle() == ""
	return nothing || slices.ContainsFunc(d.GetProblems(), func(text string) bool { return strings.HasPrefix(text, "it cannot be read: ") })
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
	if silent(d) {
		affected = f.behind(d)
	}
	for _, text := range d.GetProblems() {
		w := Warning{Kind: NoAnswer, Object: object, Text: text, Affects: affected, Advice: adviceOf(text)}
		switch nothing := len(affected) == 0 && len(d.GetPartitions()) == 0; {
		case d.GetSystem() && silent(d): // all pods need it
			w.Severity = Hurts
		case silent(d) && nothing && d.GetPartitionStyle() == "": // it is unknown what is on it
			w.Severity = WillHurt
		}
		f.add(w)
		affected = nil
	}
	if d.Online != nil && !d.GetOnline() {
		f.offline(d)
	}
	f.diskHealth(d)
	if d.GetReadOnly() {
		w := Warning{Kind: ReadOnly, Object: object, Text: "read-only: writes fail", Affects: f.pathsOn(d), Advice: "first find out who made it read-only, and why"}
		if d.Number == nil || d.GetSystem() {
			w.Advice = "it is the disk of Windows, or its number is unknown: clear the attribute with diskpart"
		} else {
			w.Run = fmt.Sprintf("csi-proxyctl disk writable %d", d.GetNumber())
		}
		f.add(w)
	}
}

// adviceOf says what to do about a disk or volume that fails or does not answer.
func adviceOf(text string) string {
	if strings.HasSuffix(text, "(Windows error 5)") {
		return "another process has it for itself, as during a repair or a format; look again when that is done"
	}
	if strings.Contains(text, "(Windows error ") {
		return "it fails: cordon the node, move the pods, and replace the disk; what it held comes from a backup"
	}
	return "it hangs: cordon the node and move the pods; then detach the disk and attach it again, or wait until its controller has reset it; nothing is lost yet"
}

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
	w := Warning{Kind: Offline, Object: DiskObject(d), Text: text, Affects: affected}
	if len(affected) == 0 { // what should use it cannot
		w.Severity = WillHurt
	}
	switch {
	case d.Number == nil:
		w.Advice = "its number is unknown: bring it online with diskpart"
	case collision:
		w.Advice = "detach the copy, or give it an id of its own with diskpart, uniqueid disk"
	default:
		w.Run, w.Advice = fmt.Sprintf("csi-proxyctl disk online %d", d.GetNumber()), "if it stays offline, look for the reason in the event log"
	}
	f.add(w)
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
	warn := func(kind Kind, text, advice string, affects []string) {
		f.add(Warning{Kind: kind, Object: object, Text: text, Advice: advice, Affects: affects})
	}
	affected := f.pathsTo(v)
	for i, text := range v.GetProblems() {
		affects := affected
		if i > 0 || v.GetState() != extensionv1.VolumeUnknown {
			affects = nil
		}
		warn(NoAnswer, text, adviceOf(text), affects)
	}
	switch v.GetState() {
	case extensionv1.VolumeRaw:
		warn(Raw, "RAW: no file system", "a driver formats a new volume; if it had data, run chkdsk", affected)
	case extensionv1.VolumeLocked:
		warn(Locked, "locked by BitLocker: unlock it to read it", "unlock it with manage-bde -unlock", affected)
	case extensionv1.VolumeOffline:
		warn(Offline, "offline: the volume does not answer", "bring it online with mountvol or diskpart, online volume", affected)
	default:
	}
	readOnly := v.GetReadOnly()
	if readOnly && !f.onReadOnlyDisk(v) {
		warn(ReadOnly, "read-only: writes fail", "clear the attribute with diskpart, attributes volume clear readonly", affected)
	}
	f.health(v, affected)
	f.space(v, affected)
}

// diskHealth warns of a disk that expects to fail. One that fails has said so before.
func (f *finder) diskHealth(d *extensionv1.Disk) {
	if d.GetHealth() != "warning" && d.GetHealth() != "unhealthy" || silent(d) {
		return
	}
	text := map[string]string{"warning": "Windows says that it is in trouble", "unhealthy": "Windows says that it does not work"}[d.GetHealth()]
	if reason := d.GetHealthReason(); reason != "" {
		text += ": " + reason
	}
	f.add(Warning{
		Severity: WillHurt, Kind: FailingDisk, Object: DiskObject(d), Text: text, Affects: f.pathsOn(d),
		Advice: "back up what is on it, move the pods, and replace the disk",
	})
}

// health warns of a volume whose file system is not well.
func (f *finder) health(v *extensionv1.Volume, affected []string) {
	w := Warning{Kind: Damaged, Object: Object{Volume, v.GetId()}, Affects: affected, Run: "csi-proxyctl volume repair " + ShortID(v.GetId())}
	w.Advice = "stop the pods that use it first: the volume is away for seconds"
	look := "; while they run, csi-proxyctl volume check " + ShortID(v.GetId()) + " --scan says how bad it is"
	switch v.GetDamage() {
	case "scan needed":
		w.Text = "its file system has met damage: scan needed"
		w.Advice += look
	case "spot fix needed":
		w.Text = "its file system is damaged: spot fix needed"
	case "offline repair needed":
		w.Text, w.Run = "its file system is damaged: offline repair needed", w.Run+" --offline"
		w.Advice = "back it up, and stop the pods that use it first: the volume is away until the end"
	default:
		if !v.GetDirty() {
			return
		}
		w.Kind, w.Text = Dirty, "dirty: it was not unmounted properly, and may be damaged"
		w.Advice += look
	}
	if !strings.EqualFold(v.GetFileSystem(), "NTFS") {
		w.Run, w.Advice = "", "only NTFS can be repaired: back it up, and restore it to a new volume if files cannot be read; ReFS mends itself"
	}
	if slices.ContainsFunc(f.node.GetDisks(), func(d *extensionv1.Disk) bool {
		return d.GetSystem() && d.Number != nil && slices.Contains(v.GetDisks(), d.GetNumber())
	}) {
		w.Run, w.Advice = "", "it is on the system disk, which csi-proxy does not change: Windows checks it at the next start, or run Repair-Volume"
	}
	f.add(w)
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

// pathsTo returns the mounts and links that lead to a volume.
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
// mappings that are idle, and connects them when a pod opens them: only opening the share distinguishes these.
func (f *finder) share(s *extensionv1.Share) {
	object, status := Object{Share, s.GetRemote()}, s.GetStatus()
	w := Warning{
		Kind: DeadShare, Object: object, Text: "Windows says: " + status, Affects: s.GetLinks(),
		Advice: "check the server and the network; if the password has changed, run " + mapAgain(s.GetRemote(), s.GetUser()),
	}
	switch {
	case s.Answers != nil && !s.GetAnswers():
		if len(s.GetProblems()) > 0 {
			w.Text = s.GetProblems()[0]
		}
		f.add(w)
	case s.Answers == nil && (status == "network error" || status == "unavailable"):
		f.add(w)
	case s.Answers == nil && status == "disconnected" && len(s.GetLinks()) > 0:
		w.Severity = WillHurt
		w.Text += ", because its server is gone or because it was idle"
		w.Advice = "find out with csi-proxyctl node --ask-shares, which opens it; then " + w.Advice
		f.add(w)
	case len(s.GetProblems()) > 0:
		for _, text := range s.GetProblems() {
			f.add(Warning{Kind: NoAnswer, Object: object, Text: text, Advice: "look again in a minute, or read the daemon's log"})
		}
	}
	if s.GetRemovalWaits() && f.allLinksKnown() && len(s.GetLinks()) == 0 {
		w = Warning{Kind: WaitingRemoval, Object: object, Text: "a driver has unmapped it, no link uses it, and it is still mapped", Run: command("smb unmap", s.GetRemote())}
		if w.Run == "" {
			w.Advice = "unmap it with csi-proxyctl smb unmap SHARE"
		}
		f.add(w)
	}
}

// manyMappings is how many mappings are many. Creating one fails for want of memory or quota at some 700
// (github.com/kubernetes-sigs/azurefile-csi-driver/issues/1925).
const manyMappings = 500

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
		w := Warning{
			Kind: DeadShare, Object: Object{Share, share}, Text: fmt.Sprintf("not mapped, but links lead into it (%d)", len(links[share])),
			Advice: "map it again with " + mapAgain(share, ""),
		}
		for _, l := range links[share] {
			w.Affects = append(w.Affects, l.GetPath())
			w.heal(l)
		}
		f.add(w)
	}
}

// heal adds what the daemon's healer said last of a staging link.
func (w *Warning) heal(l *extensionv1.Link) {
	switch l.GetState() {
	case extensionv1.StaleRemovable:
		w.Run = "csi-proxyctl node heal"
	case extensionv1.StaleKept:
		w.Text += "; kept: " + l.GetReason()
	}
}

// staleMounts warns of links that lead nowhere and that no other warning explains. Links to the same
// volume or target are one warning.
func (f *finder) staleMounts() {
	var causes []string
	links := map[string][]*extensionv1.Link{}
	for _, l := range f.node.GetLinks() {
		if l.GetStale() == "" && l.GetProblem() == "" || f.explained[l.GetPath()] {
			continue
		}
		if l.GetStale() == "" { // it may be well
			f.add(Warning{Kind: NoAnswer, Object: Object{Mount, l.GetPath()}, Text: l.GetProblem(), Advice: "look at the disk or server that it leads to, and keep it: what does not answer is not gone"})
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
		return silent(d) || d.Online != nil && !d.GetOnline() && d.GetPartitionStyle() != "GPT" && d.GetPartitionStyle() != "RAW"
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
	w := Warning{Kind: StaleMount, Object: Object{Mount, first.GetPath()}, Text: "stale: " + first.GetStale()}
	if first.GetTarget() != "" {
		w.Text += "; it leads to " + first.GetTarget()
	}
	for _, l := range links {
		if l != first {
			w.Affects = append(w.Affects, l.GetPath())
		}
	}
	if staged >= 0 {
		w.heal(first)
		switch w.Advice = "attach its disk again"; first.GetState() {
		case extensionv1.StaleRemovable:
			w.Advice = "or attach its disk again, if the volume still exists"
		case extensionv1.StaleKept:
			w.Advice += ", or end what keeps it: then csi-proxyctl node heal removes it"
		default:
			w.Advice += "; if the volume is gone for good, csi-proxyctl node heal says whether the mount can go"
		}
	} else if first.GetTarget() == "" && f.mayHide() {
		w.Advice = "keep it: a disk that does not answer or is offline may have its volume; look at that disk first"
	} else if w.Run = command("fs rmdir", first.GetPath()); w.Run != "" {
		w.Advice = "only if no pod needs it; kubelet removes the links of pods that end"
	} else {
		w.Advice = "remove it with csi-proxyctl fs rmdir if no pod needs it; its name is not safe to copy into a command"
	}
	f.add(w)
}
