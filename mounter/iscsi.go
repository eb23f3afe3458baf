package mounter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// ISCSI is a disk of an iSCSI target. Stage logs in to the target if it has no session, and stages the disk. Unstage
// takes the disk offline and logs out, unless another disk of the target is mounted, or Windows logs in to the target by
// itself when it starts.
//
// The service MSiSCSI must run. In the mode Daemon, the container needs the pipes of the groups iscsi and system.
type ISCSI struct {
	// Portals are the addresses of the target, by IP address or name: 10.0.0.10, 10.0.0.10:3260, [fd00::10]:3260. Stage
	// logs in through the first that answers. If MPIO claims iSCSI disks on the node, it also logs in through the others,
	// of which those that do not answer are left out. Without MPIO the disk has one path.
	Portals []string
	// Target is the name of the target, such as iqn.2001-04.com.example:storage.
	Target string
	// LUN is the number of the disk at the target, from 0 to 255.
	LUN uint16
	// CHAP is for targets that want it. It counts when Stage logs in, which it does not while the target has a
	// session with a connection.
	CHAP CHAP
	// RequireMPIO makes Stage fail if MPIO does not claim the disk.
	RequireMPIO bool
}

// CHAP are credentials. Secrets have 12 to 16 bytes, and are never logged.
type CHAP struct {
	// Username is empty for the name of the initiator.
	Username string
	// Secret is that of the node.
	Secret string
	// MutualSecret is that by which the target proves itself; empty if it need not. Windows has one for all targets of the
	// node, so logins with different ones wait for each other, and drivers with different ones disturb each other.
	MutualSecret string
}

func (s ISCSI) check(r StageRequest) error {
	invalid := func(format string, args ...any) error {
		return newError(failure.Invalid, opCheck, "", format, args...)
	}
	switch {
	case s.Target == "":
		return invalid("the iSCSI target has no name; set Target")
	case len(s.Portals) == 0:
		return invalid("the iSCSI target has no portal; set Portals to its addresses")
	case s.LUN > 255:
		return invalid("LUN %d is too high: Windows has LUNs up to 255", s.LUN)
	case s.CHAP.Secret == "" && s.CHAP != CHAP{}:
		return invalid("CHAP needs a secret; set CHAP.Secret")
	}
	for _, text := range s.Portals {
		if _, err := parsePortal(text); err != nil {
			return err
		}
	}
	return cmp.Or(checkFileSystem(r), checkText(append([]string{s.Target, s.CHAP.Username, s.CHAP.Secret, s.CHAP.MutualSecret}, s.Portals...)...))
}

func (s ISCSI) keys() Source {
	s.CHAP = CHAP{}
	return s
}

// disk are the keys of the disk. The LUN is that at the target, which its sessions tell.
func (s ISCSI) disk() Disk { return Disk{Adapter: s.Target, LUN: strconv.Itoa(int(s.LUN))} }

// portal is where a target is. Port 0 is the default.
type portal struct {
	address string
	port    uint32
}

func parsePortal(text string) (portal, error) {
	if host, number, err := net.SplitHostPort(text); err == nil {
		port, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return portal{}, newError(failure.Invalid, opCheck, "", "%.250q is not a portal; use one such as 10.0.0.10:3260", text)
		}
		return portal{host, uint32(port)}, nil
	}
	return portal{address: strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")}, nil // without a port
}

// kind is the number of the way to authenticate, on the wire and in package iscsi.
func (c CHAP) kind() int {
	switch {
	case c.MutualSecret != "":
		return 2
	case c.Secret != "":
		return 1
	default:
		return 0
	}
}

// anyPortal stands for the portals of a target that is logged out of: all its sessions end.
const anyPortal = "localhost"

// isMPIO reports whether MPIO has made a device.
func isMPIO(device string) bool { return strings.HasPrefix(strings.ToLower(device), `\\?\mpio#`) }

func (s ISCSI) stage(ctx context.Context, m *Mounter, path string, request StageRequest) (Staged, error) {
	there, err := m.checkFree(ctx, path, request)
	if err != nil {
		return Staged{}, err
	}
	readOnly, err := m.isReadOnlyYet(ctx, path, there, request)
	if err != nil {
		return Staged{}, err
	}
	// From here until the path is unlocked, Unstage of another volume does not log out of the target.
	unlock, err := m.locks.target(ctx, s.Target)
	if err != nil {
		return Staged{}, err
	}
	err = m.begin(ctx, path, s, readOnly)
	unlock()
	if err != nil {
		return Staged{}, err
	}
	var staged Staged
	disk, paths, err := m.connect(ctx, s)
	if err == nil {
		staged, err = m.stageDisk(ctx, disk, s.disk(), path, there, request)
	}
	if there == "" && isFinal(err) {
		if leaveErr := m.leave(ctx, s.Target, path, nil); leaveErr != nil {
			klog.FromContext(ctx).Info("Target stays logged in", "target", s.Target, "reason", leaveErr.Error())
		}
		m.drop(ctx, path)
	}
	staged.Paths = paths
	return staged, err
}

// connect makes the disk appear, and returns it and how many paths it has.
func (m *Mounter) connect(ctx context.Context, s ISCSI) (disk foundDisk, paths int, err error) {
	sessions, err := m.node.machine.SessionsOf(ctx, []string{s.Target})
	if err != nil {
		return disk, 0, err
	}
	if connected(sessions) == 0 {
		if err := m.renew(ctx, s, sessions); err != nil {
			return disk, 0, err
		}
		if err := m.logInFirst(ctx, s); err != nil {
			return disk, 0, err
		}
	}
	if disk, err = m.find(ctx, s.disk()); err != nil {
		return disk, 0, err
	}
	if len(s.Portals) == 1 && !s.RequireMPIO {
		return disk, 1, nil
	}
	switch {
	case isMPIO(disk.mustBe.Device):
		paths, err = m.addPaths(ctx, s)
		return disk, paths, err
	case s.RequireMPIO:
		return disk, 0, newError(failure.InUse, "look at", diskName(disk.number), "MPIO does not claim it; install MPIO, let it claim iSCSI disks, and restart Windows, or clear RequireMPIO")
	}
	return disk, 1, nil
}

// connected is how many sessions have a connection.
func connected(sessions []nodeapi.Session) (n int) {
	for _, s := range sessions {
		if s.Connections > 0 {
			n++
		}
	}
	return n
}

// renew ends sessions that have lost their connection. Windows connects them again by itself, but with the secret of
// their login, which may have changed. A session whose disks are used stays.
func (m *Mounter) renew(ctx context.Context, s ISCSI, sessions []nodeapi.Session) error {
	if len(sessions) == 0 {
		return nil
	}
	const op = "renew session of"
	if slices.ContainsFunc(sessions, func(s nodeapi.Session) bool { return s.Persistent }) {
		if slices.ContainsFunc(sessions, func(s nodeapi.Session) bool { return len(s.Disks)+len(s.Problems) > 0 }) {
			return newError(failure.Unavailable, op, s.Target, "it has lost its connection; Windows logs in by itself when it starts, so check the portals and the secret of that login")
		}
		return nil // perhaps there is only the login
	}
	unlock, err := m.locks.target(ctx, s.Target)
	if err != nil {
		return err
	}
	defer unlock()
	if sessions, err = m.node.machine.SessionsOf(ctx, []string{s.Target}); err != nil || len(sessions) == 0 || connected(sessions) > 0 {
		return err // another call has renewed it meanwhile
	}
	if user, _ := m.userOf(ctx, sessions, "", nil); user != "" {
		return newError(failure.Unavailable, op, s.Target, "it has lost its connection, and %s; Windows connects again when a portal answers and the secret of the login has not changed", user)
	}
	klog.FromContext(ctx).Info("Logging out of a target that has lost its connection", "target", s.Target)
	return ignoreMissing(m.node.logOut(ctx, s.Target))
}

// logInFirst logs in through the first portal that answers.
func (m *Mounter) logInFirst(ctx context.Context, s ISCSI) error {
	var failures []error
	for i, text := range s.Portals {
		// A portal that does not answer leaves time for the others.
		attempt, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok {
			attempt, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(s.Portals)-i))
		}
		err := during("log in through", text, m.logInAt(attempt, s, text))
		cancel()
		if class := failure.ClassOf(err); err == nil || ctx.Err() != nil || class != failure.Unavailable && class != failure.NotFound && class != failure.Deadline {
			return err
		}
		failures = append(failures, err)
	}
	if len(failures) == 1 {
		return failures[0]
	}
	class := failure.NotFound
	texts := make([]string, len(failures))
	for i, err := range failures {
		texts[i] = failure.Message(err)
		if failure.ClassOf(err) != failure.NotFound {
			class = failure.Unavailable
		}
	}
	code, _ := failure.WindowsCode(failures[0])
	return &nodeError{class: class, code: code, text: prefix("log in to", s.Target) + "no portal leads to it: " + strings.Join(texts, "; ")}
}

// logInAt logs in through a portal. Windows knows most targets already.
func (m *Mounter) logInAt(ctx context.Context, s ISCSI, text string) error {
	at, err := parsePortal(text)
	if err != nil {
		return err
	}
	done, err := m.useMutualSecret(ctx, s.CHAP.MutualSecret)
	if err != nil {
		return err
	}
	defer done()
	klog.FromContext(ctx).V(4).Info("Logging in", "target", s.Target, "portal", text)
	err = m.node.logIn(ctx, at, s.Target, s.CHAP)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := m.node.addPortal(ctx, at); err != nil {
		return err
	}
	if err = m.node.logIn(ctx, at, s.Target, s.CHAP); errors.Is(err, fs.ErrNotExist) {
		code, _ := failure.WindowsCode(err)
		return &nodeError{class: failure.NotFound, code: code, text: prefix("log in to", s.Target) + "the portal does not have it, or not for this node; check the name of the target, and which initiators it admits"}
	}
	return err
}

// pathLimit is how long a portal of a disk that has a path may take.
const pathLimit = 15 * time.Second

// addPaths logs in through the portals that have no session, and returns how many sessions there are. A portal that does
// not answer is left out: that is what the others are for.
func (m *Mounter) addPaths(ctx context.Context, s ISCSI) (int, error) {
	for _, text := range s.Portals {
		sessions, err := m.node.machine.SessionsOf(ctx, []string{s.Target})
		if err != nil {
			return 0, err
		}
		if len(sessions) >= len(s.Portals) { // also one that Windows connects again
			return connected(sessions), nil
		}
		at, err := parsePortal(text)
		attempt, cancel := context.WithTimeout(ctx, pathLimit)
		if err == nil {
			err = m.node.addPortal(attempt, at) // a path is added only through a portal that Windows knows
		}
		if err == nil {
			err = m.logInAt(attempt, s, text)
		}
		cancel()
		if class := failure.ClassOf(err); (class == failure.Unavailable || class == failure.Deadline) && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Disk has no path through a portal", "target", s.Target, "portal", text, "reason", err.Error())
			err = nil
		}
		if err != nil {
			return 0, err
		}
	}
	sessions, err := m.node.machine.SessionsOf(ctx, []string{s.Target})
	return connected(sessions), err
}

// mutualSecret is the one secret of the node while logins need it.
type mutualSecret struct {
	mu    sync.Mutex
	value string
	users int
	free  chan struct{} // closed when the last user leaves
}

// useMutualSecret sets the node's secret until done is called. Logins with another secret wait.
func (m *Mounter) useMutualSecret(ctx context.Context, secret string) (done func(), err error) {
	if secret == "" {
		return func() {}, nil
	}
	u := m.mutual
	u.mu.Lock()
	for u.users > 0 && u.value != secret {
		free := u.free
		u.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		u.mu.Lock()
	}
	if u.users++; u.users == 1 {
		u.value, u.free = secret, make(chan struct{})
	}
	u.mu.Unlock()
	done = func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.users--; u.users == 0 {
			u.value = ""
			close(u.free)
		}
	}
	if err := m.node.setMutualSecret(ctx, secret); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// release logs out of the target, after what Disk does.
func (s ISCSI) release(ctx context.Context, m *Mounter, path string, request UnstageRequest) error {
	sessions, err := m.node.machine.SessionsOf(ctx, []string{s.Target})
	if err != nil {
		return unlessUnknown(ctx, err)
	}
	var own *uint32
	if connected(sessions) > 0 {
		if err := s.disk().release(ctx, m, path, request); err != nil {
			return err
		}
		if disk, err := m.node.findDisk(ctx, nodeapi.Query(s.disk())); err == nil {
			own = &disk.number
		}
	}
	return m.leave(ctx, s.Target, path, own)
}

// leave logs out of a target, unless another volume of it is staged or being staged, or Windows logs in by itself.
func (m *Mounter) leave(ctx context.Context, target, path string, own *uint32) error {
	unlock, err := m.locks.target(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()
	m.leaves(path)
	sessions, err := m.node.machine.SessionsOf(ctx, []string{target})
	switch {
	case err == nil && len(sessions) == 0: // a login that has not come back brings one later, also one of another volume
		if ours, user := m.begunOf(target, path); !ours || user != "" {
			return nil
		}
		if err := m.node.logOut(ctx, target); passes(ctx, err) {
			return err
		}
		return nil
	case err != nil:
		return unlessUnknown(ctx, err)
	}
	if may, err := m.mayLeave(ctx, sessions, path, own); err != nil || !may {
		return err
	}
	return ignoreMissing(m.node.logOut(ctx, target))
}

// takeDown is letGo and unmount. If the disk is of an iSCSI target that nothing else uses, the disk goes offline and the
// target is logged out of. Volumes of a target are unmounted one after the other, so that the last one sees that it is.
func (m *Mounter) takeDown(ctx context.Context, number uint32, path, id string, offline bool) error {
	sessions, err := m.node.machine.SessionsOf(ctx, nil, number)
	if err = unlessUnknown(ctx, err); err != nil {
		return err
	}
	disk := foundDisk{number: number, mustBe: diskapi.MustBe{VolumeID: id}}
	if len(sessions) == 0 {
		if _, err := m.letGo(ctx, disk, path, offline); err != nil {
			return err
		}
		return m.node.unmount(ctx, id, path)
	}
	if _, err := m.flush(ctx, id, path); err != nil { // a LUN that hangs keeps no other one of its target
		return err
	}
	target := sessions[0].Target
	unlock, err := m.locks.target(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()
	if sessions, err = m.node.machine.SessionsOf(ctx, []string{target}); err != nil { // others have come and gone since
		return err
	}
	leave, err := m.mayLeave(ctx, sessions, path, &number)
	if err != nil {
		return err
	}
	stays, err := m.letGo(ctx, disk, path, offline || leave)
	if err != nil {
		return err
	}
	m.leaves(path)
	if leave && !stays {
		klog.FromContext(ctx).V(4).Info("Logging out", "target", target, "path", path)
		if err := ignoreMissing(m.node.logOut(ctx, target)); err != nil {
			return err
		}
	}
	return m.node.unmount(ctx, id, path)
}

// mayLeave reports whether the sessions of a target can be ended after the volume at a path is unstaged, as far as other
// disks are concerned. Its own disk, if that is known, must say where else it is mounted.
func (m *Mounter) mayLeave(ctx context.Context, sessions []nodeapi.Session, path string, own *uint32) (bool, error) {
	if len(sessions) == 0 || slices.ContainsFunc(sessions, func(s nodeapi.Session) bool { return s.Persistent }) {
		return false, nil
	}
	user, silent := m.userOf(ctx, sessions, path, own)
	if silent {
		m.leaveLater(ctx, sessions[0].Target)
	}
	if user != "" {
		klog.FromContext(ctx).Info("Target stays logged in, because "+user, "target", sessions[0].Target, "path", path)
		return false, nil
	}
	if own == nil {
		return true, nil
	}
	paths, err := m.pathsOf(ctx, *own)
	elsewhere := slices.ContainsFunc(paths, func(at string) bool { return pathKey(at) != pathKey(path) })
	return !elsewhere, m.unlessGone(ctx, *own, err)
}

// begunOf reports whether a volume of a target has been begun at a path, and which call stages or unstages another, or "".
func (m *Mounter) begunOf(target, path string) (own bool, user string) {
	m.begun.Range(func(key, value any) bool {
		at, _ := key.(string)
		other, _ := value.(begun)
		iscsi, ok := other.source.(ISCSI)
		switch {
		case !ok || !strings.EqualFold(iscsi.Target, target):
		case at == pathKey(path):
			own = true
		case path != "" && !other.leaves && m.locks.isHeld(at):
			user = "a volume is being staged or unstaged at " + at
		}
		return true
	})
	return own, user
}

// userLimit is how long a disk of the same target may take to say where it is mounted.
const userLimit = 2 * time.Second

// userOf says what uses the disks of a target besides the path and its own disk, or "". What is silent may be a user: another
// volume must not fail because of it.
func (m *Mounter) userOf(ctx context.Context, sessions []nodeapi.Session, path string, own *uint32) (user string, silent bool) {
	_, user = m.begunOf(sessions[0].Target, path)
	limited, cancel := context.WithTimeout(ctx, userLimit)
	defer cancel()
	var disks []uint32
	for _, s := range sessions {
		disks = append(disks, s.Disks...)
	}
	slices.Sort(disks)
	for _, number := range slices.Compact(disks) {
		if user != "" || own != nil && *own == number {
			continue
		}
		if at, ok := m.staging.Load(number); ok { // which may fail
			user, silent = fmt.Sprintf("%s is being staged at %s", diskName(number), at), true
			continue
		}
		if state, err := m.node.disks.GetDiskState(limited, &disk.GetDiskStateRequest{DiskNumber: number}); err == nil && !state.IsOnline {
			continue // nothing of it is mounted; to find its volumes, all others would be asked
		}
		paths, err := m.pathsOf(limited, number)
		for again := 0; err != nil && again < 3; again++ { // most failures do not last, and no call asks later
			paths, err = m.pathsOf(limited, number)
		}
		err = m.unlessGone(limited, number, err)
		paths = slices.DeleteFunc(paths, func(at string) bool { return pathKey(at) == pathKey(path) })
		switch {
		case err != nil:
			silent = true
			user = fmt.Sprintf("%s does not say where it is mounted: %s", diskName(number), failure.Message(err))
		case len(paths) > 0:
			user = fmt.Sprintf("%s is mounted at %s", diskName(number), paths[0])
		}
	}
	return user, silent
}

const (
	// leavePause is from one attempt to log out to the next.
	leavePause = time.Minute
	// leaveLimit is for one attempt: calls about the target wait for it.
	leaveLimit = 10 * time.Second
	// noPath is where no volume is staged.
	noPath = "."
)

// leaveLater logs out of a target again and again, until it is known what uses its disks: no call of a driver asks again.
func (m *Mounter) leaveLater(ctx context.Context, target string) {
	if _, waits := m.leaving.LoadOrStore(strings.ToLower(target), true); waits {
		return
	}
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(leavePause, func() {
		m.leaving.Delete(strings.ToLower(target))
		if m.closed.Load() {
			return
		}
		limited, cancel := context.WithTimeout(ctx, leaveLimit)
		defer cancel()
		if err := m.leave(limited, target, noPath, nil); err != nil {
			klog.FromContext(ctx).Info("Could not log out of a target that nothing may use", "target", target, "err", err)
			m.leaveLater(ctx, target)
		}
	})
}

// unlessUnknown accepts a daemon that does not report sessions. They stay then.
func unlessUnknown(ctx context.Context, err error) error {
	if err == nil || !cannotTell(err) {
		return err
	}
	klog.FromContext(ctx).V(2).Info("iSCSI sessions stay, because the daemon does not report them", "reason", err.Error())
	return nil
}
