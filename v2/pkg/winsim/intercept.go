package winsim

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// seam is the machine that hosts see. Its name keeps the emulated calls, which tests do not make, out of the
// documentation of Node.
type seam = win.Machine

// slowCalls take time by themselves where time is real: those that reach a server, and formats.
var slowCalls = map[string]bool{
	"AddSendTargetPortal": true, "RefreshSendTargetPortal": true, "Login": true, "Format": true, "FormatLegacy": true,
	"SMBMapping": true, "CreateSMBMapping": true, "RemoveSMBMapping": true,
}

// prompt reports whether a call returns at once, as nearly all do. A disk that begins to hang just then misses it.
func (n *Node) prompt(c *win.Call) bool {
	return n.faults.count.Load() == 0 && !(n.real && slowCalls[c.Method]) && n.hangsAt(c) == nil
}

// intercept is in front of every emulated call, and only here calls are counted, fail and wait.
func (n *Node) intercept(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	call := c.Method
	switch call {
	case "Open":
		call = "OpenDirectory" // relative to another one
	case "Next": // a part of ListDirectory
		if err := ctx.Err(); err != nil {
			return err
		}
		return next(ctx)
	}
	n.calls.count(call)
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() != nil { // it is prompt: others have a context that does not end
		return next(ctx)
	}
	n.mu.Lock()
	restarted := n.restarted
	n.mu.Unlock()
	hits := n.faults.match(call, func() []string { return n.objectsOf(c) })
	if err := n.apply(ctx, hits, call, restarted); err != nil {
		return err
	}
	if err := n.awaitDisk(c, restarted); err != nil {
		return err
	}
	err := next(ctx)
	for _, fault := range hits {
		if fault.Late > 0 {
			_ = fault.delay(ctx, fault.Late, restarted)
		}
	}
	return err
}

// objectsOf returns the names of what a call is about, as faults know them. They are collected only if one asks: a
// path can have thousands of components. A call without an object has an empty name.
func (n *Node) objectsOf(c *win.Call) []string {
	args := c.Args()
	if entry := c.Entry(); entry != "" {
		names := []string{entry}
		for _, arg := range args {
			if id, ok := arg.Value.(win.VolumeID); ok { // to mount there
				names = append(names, string(id))
			}
		}
		return names
	}
	if len(args) == 0 {
		return []string{""}
	}
	switch object := args[0].Value.(type) { // the others say what to do with it
	case string:
		return []string{object}
	case win.Path:
		return []string{object.String()}
	case win.Device:
		return n.deviceNames(object)
	case win.VolumeID:
		return n.deviceNames(win.Device(object))
	case uint32:
		return n.deviceNames(win.PhysicalDrive(object))
	case win.SMBMappingRequest:
		return []string{object.Remote}
	case win.TargetPortal:
		return []string{object.String(), object.Key()}
	case win.SendTargetPortal:
		return []string{object.Portal.String(), object.Portal.Key()}
	case win.Login:
		return []string{object.Target, object.Portal.String()}
	case win.PersistentLogin:
		return []string{object.Target}
	case win.SessionID:
		return n.sessionNames(object)
	default:
		return []string{""}
	}
}

// deviceNames are the names of a device: also the number of a disk, and the ID of a volume.
func (n *Node) deviceNames(device win.Device) []string {
	names := []string{string(device)}
	if id, ok := win.ParseVolumeID(string(device)); ok {
		return append(names, string(id), string(id.Device()))
	}
	defer n.lock()()
	if d := n.disks.diskOf(device); d != nil {
		names = append(names, string(win.PhysicalDrive(d.Number)), d.device)
	}
	return names
}

// sessionNames are the names of an iSCSI session: also its target.
func (n *Node) sessionNames(id win.SessionID) []string {
	names := []string{fmt.Sprintf("%x-%x", id.AdapterUnique, id.AdapterSpecific)}
	defer n.lock()()
	if s := n.initiator.session(id); s != nil {
		names = append(names, s.target.IQN)
	}
	return names
}
