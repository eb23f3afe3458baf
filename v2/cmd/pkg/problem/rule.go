package problem

import (
	"slices"
	"strconv"
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

// rule is what a kind of problem means, for all causes unless it has some.
type rule struct {
	kind  Kind
	cause string   // or several
	works bool     // what has it can be used, at least for reading
	least Severity // also if nothing that it is about is used
	// advice helps at the first look, and again if all looks since a minute ago have the same cause: only then may it
	// say that a disk must be replaced. MAP is the command that maps a share again.
	advice, again string
}

const silence, failure = extensionv1.ProblemSilence, extensionv1.ProblemFailure

// rules are those of all kinds, the most urgent first. Without advice it depends on the object. The codes are
// ERROR_ACCESS_DENIED (5), ERROR_NOT_READY (21), ERROR_CRC (23), ERROR_SEM_TIMEOUT (121), ERROR_IO_DEVICE (1117) and
// ERROR_DEVICE_NOT_CONNECTED (1167). Shares have ERROR_BAD_NET_NAME (67); the account's ERROR_ACCOUNT_DISABLED (1331) and
// ERROR_ACCOUNT_LOCKED_OUT (1909); and the password's ERROR_INVALID_PASSWORD (86), ERROR_LOGON_FAILURE (1326),
// ERROR_PASSWORD_EXPIRED (1330) and ERROR_PASSWORD_MUST_CHANGE (1907).
// https://learn.microsoft.com/windows/win32/debug/system-error-codes
var rules = []rule{
	{kind: NoAnswer, cause: silence, advice: "look again in a minute: if it is only slow, it answers then", again: "cordon the node and move the pods, and stop them first: what is not flushed is lost when the disk is torn off; it may return when its controller has reset it"},
	{kind: NoAnswer, cause: failure, advice: "read the daemon's log"},
	{kind: NoAnswer, cause: "5", advice: "another process has it for itself, as during a repair or a format; look again when that is done"},
	{kind: NoAnswer, cause: "21", advice: "it is offline, still starts, or has no medium; look again in a minute", again: "it does not get ready: bring it online or attach it again, or move the pods"},
	{kind: NoAnswer, cause: "23", advice: "some of its data is bad: back up what can be read, and look again in a minute", again: "its data stays bad: cordon the node, move the pods, and replace the disk; what cannot be read comes from a backup"},
	{kind: NoAnswer, cause: "121", advice: "its driver has given up waiting for it; look again in a minute, and see whether other disks on the same path fail, too", again: "cordon the node and move the pods; check the path to it, such as cable, network and host, before the disk"},
	{kind: NoAnswer, cause: "1117", advice: "it failed once, which may pass; look again in a minute", again: "it keeps failing: cordon the node, move the pods, and replace the disk; what it held comes from a backup"},
	{kind: NoAnswer, cause: "1167", advice: "it has left the node: attach it again, then restart the pods that use it"},
	{kind: NoAnswer, advice: "look again in a minute, and read the daemon's log", again: "it keeps failing: cordon the node, move the pods, and look for the code in the event log"},
	{kind: Offline, advice: "bring it online with mountvol or diskpart, online volume"},
	{kind: DeadSession, least: WillHurt, advice: "check the target, its portal and the network"},
	{kind: DeadShare, cause: silence, advice: "check the server and the network"},
	{kind: DeadShare, cause: "5", advice: "give the account the right to open it"},
	{kind: DeadShare, cause: "67", advice: "its server answers, and does not have it: share it again there"},
	{kind: DeadShare, cause: "1331 1909", advice: "let the account be used again on the server; then run MAP"},
	{kind: DeadShare, cause: "86 1326 1330 1907", advice: "if the password has changed, or when it is right again, run MAP"},
	{kind: DeadShare, cause: failure, advice: "check the server and the network; if the password has changed, run MAP"},
	{kind: DeadShare, advice: "check the server and the network; map it again only if the server answers: MAP"},
	{kind: StaleMount},
	{kind: Locked},
	{kind: FailingDisk, works: true, least: WillHurt, advice: "back up what is on it, and move the pods", again: "back up what is on it, move the pods, and replace the disk"},
	{kind: Damaged, works: true},
	{kind: Dirty, works: true},
	{kind: Full, works: true},
	{kind: Raw, advice: "a driver formats a new volume; if it had data, restore a snapshot"},
	{kind: ReadOnly, works: true, advice: "clear the attribute with diskpart, attributes volume clear readonly"},
	{kind: Lagging, works: true},
	{kind: WaitingRemoval, works: true, advice: "unmap it with csi-proxyctl smb unmap SHARE"},
	{kind: ManyMappings, least: WillHurt, advice: "unmap shares that no link uses with csi-proxyctl smb unmap SHARE, or move pods to another node"},
	{kind: Unseen, works: true, advice: "let a csi-proxy of this project serve all groups, see its -api-groups"},
	{kind: Waits, works: true, advice: "if it needs volumes, kubectl describe pod and the failed calls say why it has none; else nothing is wrong here"},
}

// ruleOf returns the rule of a kind that has this cause, or has none.
func ruleOf(kind Kind, cause string) rule {
	i := slices.IndexFunc(rules, func(r rule) bool {
		return r.kind == kind && (r.cause == "" || slices.Contains(strings.Fields(r.cause), cause))
	})
	r := rules[i]
	if r.again == "" {
		r.again = r.advice
	}
	return r
}

func urgency(kind Kind) int {
	return slices.IndexFunc(rules, func(r rule) bool { return r.kind == kind })
}

// causeOf returns how rules name the cause of what is unknown.
func causeOf(p *extensionv1.Problem) string {
	if code := p.GetWindowsCode(); code != 0 {
		return strconv.FormatUint(uint64(code), 10)
	}
	return p.GetKind()
}
