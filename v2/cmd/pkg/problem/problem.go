// Package problem finds what is wrong with the storage of a node, whom it hurts, and what to do about it.
// csi-proxyctl and the daemon use it for all views, the metrics, the alerts and the event log, so that they mean the same.
//
// One cause is one problem. What follows from it, such as the mounts on a disk that is offline, is part
// of the problem and not counted again.
package problem

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

// Severity says whom a problem hurts. The words are stable.
type Severity string

// The severities.
const (
	Hurts    Severity = "hurts"     // pods that run now, or all of the node
	WillHurt Severity = "will-hurt" // pods that write, restart or come next
	Note     Severity = "note"      // no pod that we know of
)

// severities are all, the most urgent first.
var severities = []Severity{Hurts, WillHurt, Note}

// Severities returns all, the most urgent first.
func Severities() []Severity { return slices.Clone(severities) }

// Words returns the severity for people.
func (s Severity) Words() string {
	switch s {
	case Hurts:
		return "hurts pods"
	case WillHurt:
		return "will hurt"
	default:
		return string(s)
	}
}

// Kind is the kind of a problem. The words are stable.
type Kind string

// The kinds of problems.
const (
	NoAnswer       Kind = "no-answer"       // a call failed
	Offline        Kind = "offline"         // a disk that something needs, or a volume
	DeadSession    Kind = "dead-session"    // iSCSI session without connection or disks
	DeadShare      Kind = "dead-share"      // SMB share that links need and that does not answer
	StaleMount     Kind = "stale-mount"     // the target of a mount or link is gone
	Locked         Kind = "locked"          // volume, by BitLocker
	FailingDisk    Kind = "failing-disk"    // a disk that expects to fail, or reports errors
	Damaged        Kind = "damaged"         // volume whose file system has noted damage
	Dirty          Kind = "dirty"           // volume that was not unmounted properly
	Full           Kind = "full"            // volume, see Limits
	Raw            Kind = "raw"             // volume without a file system
	ReadOnly       Kind = "read-only"       // disk or volume
	Lagging        Kind = "lagging"         // file system smaller than possible
	WaitingRemoval Kind = "waiting-removal" // SMB mapping that a driver has unmapped and that stays
	ManyMappings   Kind = "many-mappings"   // SMB mappings, of which Windows has few left
	Unseen         Kind = "unseen"          // the server does not report something
	Waits          Kind = "waits"           // a pod for which nothing is mounted
)

// Kinds returns the kinds that Find returns, the most urgent first.
func Kinds() (kinds []Kind) {
	for _, r := range rules {
		if !slices.Contains(kinds, r.kind) {
			kinds = append(kinds, r.kind)
		}
	}
	return kinds[:slices.Index(kinds, Unseen)]
}

// Type is the type of an object. The words are stable.
type Type string

// The types of objects.
const (
	Node    Type = "node"
	Disk    Type = "disk"    // ID is its number, or its device interface if that is unknown
	Volume  Type = "volume"  // ID is \\?\Volume{GUID}\
	Mount   Type = "mount"   // ID is the path of a mounted folder or link
	Share   Type = "share"   // ID is \\server\share
	Session Type = "session" // ID is the name of the iSCSI target
)

// Object is what a problem is about.
type Object struct {
	Type Type   `json:"type"`
	ID   string `json:"id"` // empty for the node
}

// Name returns the object for people.
func (o Object) Name() string {
	switch {
	case o.Type == Node:
		return string(Node)
	case o.Type == Disk && strings.HasPrefix(o.ID, `\`): // without the class, which all disks have
		device, _, _ := strings.Cut(strings.TrimPrefix(o.ID, `\\?\`), "#{")
		return "disk ? (" + device + ")"
	case o.Type == Volume:
		return "volume " + ShortID(o.ID)
	case o.Type == Mount:
		return o.ID
	default:
		return string(o.Type) + " " + o.ID
	}
}

// Problem is one problem. The texts are not escaped: names in them come from devices and pods.
type Problem struct {
	Severity Severity `json:"severity"`
	Kind     Kind     `json:"kind"`
	Object   Object   `json:"object"`
	// Others are more objects with this problem, by the same cause: all are of Of, such as a server or a bus.
	Others []Object `json:"others,omitempty"`
	Of     string   `json:"of,omitempty"`
	Text   string   `json:"text"`
	// Cause is why nothing is known: silence, a Windows code or else failure; the health of a disk, or why a share does not open. Other kinds have none.
	Cause string `json:"cause"`
	// Since is when the daemon first saw it; nil if it has not yet, or does not look.
	Since *time.Time `json:"since"`
	// Pods and PVs are those that it hurts, or will: UIDs and names, as far as paths of kubelet name them.
	Pods []string `json:"pods"`
	PVs  []string `json:"persistentVolumes"`
	// Run is a command that helps; empty if there is none.
	Run string `json:"run"`
	// Advice says what a person must do besides, or instead. Run or Advice is never empty.
	Advice string `json:"advice"`
	// Affects are the paths, volumes and disks that do not work because of it.
	Affects []string `json:"affects"`
}

// Sort puts the most urgent problems first, and keeps the order of those of one kind.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
			cmp.Compare(urgency(a.Kind), urgency(b.Kind)))
	})
}

// PodsHurt counts the pods that problems hurt now.
func PodsHurt(problems []Problem) int {
	hurt := map[string]bool{}
	for _, p := range problems {
		for _, uid := range p.Pods {
			if p.Severity == Hurts {
				hurt[uid] = true
			}
		}
	}
	return len(hurt)
}

// PodNames returns namespace/name of pods, by UID.
func PodNames(node *extensionv1.Node) map[string]string {
	names := map[string]string{}
	for _, p := range node.GetPods() {
		if p.GetName() == "" { // it has not started
			continue
		}
		names[p.GetUid()] = p.GetNamespace() + "/" + p.GetName()
	}
	return names
}

// ShortID returns the GUID of a volume id. Commands accept it, too.
func ShortID(id string) string {
	short, ok := strings.CutPrefix(id, `\\?\Volume{`)
	if !ok {
		return id
	}
	return strings.TrimSuffix(short, `}\`)
}

// command returns a command with a path or name as its last argument, or nothing if that is not safe to copy: pods choose
// names of links. The argument needs no quotes in cmd.exe, PowerShell and sh, which agree about none: it has slashes, which
// csi-proxyctl takes for backslashes, and only characters that mean nothing to any of them.
func command(line, name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(`\:._-~`, r)
	}) {
		return ""
	}
	return "csi-proxyctl " + line + " " + strings.ReplaceAll(name, `\`, "/")
}
