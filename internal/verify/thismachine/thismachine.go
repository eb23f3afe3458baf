// Package thismachine makes the Windows machine that the program runs on a site of package verify:
// with virtual disks of its own, or with empty disks that the operator has named.
package thismachine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/journal"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// Config says what a run may use.
type Config struct {
	// Dir is a folder on NTFS. It is created if it is missing.
	Dir string
	// Disks are empty disks that are used instead of virtual disks.
	Disks  []uint32
	Share  *verify.Share
	Portal *win.TargetPortal
	// Program is the version of the program.
	Program string
	// Names keeps names and serial numbers in the recording, and the bytes of control codes.
	Names bool
}

// clean removes what a journal names, and nothing else: a mapping or a portal that was there before the
// run is not in it. It tries all entries, and begins with the last: a service depends on earlier ones. What it
// cannot remove stays in the journal.
func clean(ctx context.Context, m win.Machine, dir string, j *journal.Journal, say func(string)) error {
	var problems []error
	for _, e := range slices.Backward(j.Entries()) {
		if err := cleanEntry(ctx, m, dir, e, say); err != nil {
			problems = append(problems, fmt.Errorf("%s is left: %w", e, err))
			continue
		}
		if e.Kind != journal.Table {
			say(fmt.Sprintf("Removed: %s", e))
		}
		problems = append(problems, j.Remove(e))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return j.Clear()
}

func cleanEntry(ctx context.Context, m win.Machine, dir string, e journal.Entry, say func(string)) error {
	switch e.Kind {
	case journal.Folder:
		path := dir + `\` + e.Name
		if err := detachAll(path); err != nil {
			return err
		}
		return remove(ctx, m, dir, path)
	case journal.Service:
		return removeService(ctx, m, e.Name)
	case journal.Zip:
		return remove(ctx, m, dir, dir+`\`+e.Name)
	case journal.Mapping:
		return ignoreMissing(m.RemoveSMBMapping(ctx, e.Name, true))
	case journal.Portal:
		return removePortal(ctx, m, e.Name)
	case journal.Table:
		number, err := strconv.ParseUint(e.Name, 10, 32)
		if err != nil {
			return err
		}
		layout, err := m.DriveLayout(ctx, win.PhysicalDrive(uint32(number)))
		if err == nil && !isEmpty(layout) {
			say(fmt.Sprintf("Disk %d has a partition table, perhaps that of a killed run. If it has no other use, clear it: Clear-Disk -Number %d -RemoveData", number, number))
		}
		return ignoreMissing(err)
	}
	return nil
}

// remove removes a file, or a folder with what is in it. It follows no link out of dir.
func remove(ctx context.Context, m win.Machine, dir, path string) error {
	files, err := filesystem.New(fsapi.NewOn(m), filesystem.WorkingDirs(dir))
	if err != nil {
		return err
	}
	_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path, Force: true})
	return err
}

func removePortal(ctx context.Context, m win.Machine, name string) error {
	portals, err := m.ReportSendTargetPortals(ctx)
	if err != nil {
		return err
	}
	for _, known := range portals {
		if known.Portal.String() == name {
			return m.RemoveSendTargetPortal(ctx, known)
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isEmpty reports whether a table has no partitions.
func isEmpty(layout win.DriveLayout) bool {
	for _, p := range layout.Partitions {
		if p.Length != 0 {
			return false
		}
	}
	return layout.Style == win.StyleRaw
}

// journaled is a machine that announces what would survive the process, until it is removed. What is there
// already belongs to a user of the machine, and must not be removed after the run: it is not announced. If
// the machine does not tell what is there, nothing is made.
type journaled struct {
	win.Machine
	journal *journal.Journal
}

func (j journaled) CreateSMBMapping(ctx context.Context, request win.SMBMappingRequest) error {
	switch _, err := j.SMBMapping(ctx, request.Remote); {
	case errors.Is(err, fs.ErrNotExist):
		if err := j.journal.Add(journal.Entry{Kind: journal.Mapping, Name: request.Remote}); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return j.Machine.CreateSMBMapping(ctx, request)
}

func (j journaled) AddSendTargetPortal(ctx context.Context, portal win.TargetPortal) error {
	portals, err := j.ReportSendTargetPortals(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(portals, func(known win.SendTargetPortal) bool { return known.Portal.String() == portal.String() }) {
		if err := j.journal.Add(journal.Entry{Kind: journal.Portal, Name: portal.String()}); err != nil {
			return err
		}
	}
	return j.Machine.AddSendTargetPortal(ctx, portal)
}

func (j journaled) RemoveSMBMapping(ctx context.Context, remote string, force bool) error {
	if err := j.Machine.RemoveSMBMapping(ctx, remote, force); err != nil {
		return err
	}
	return j.journal.Remove(journal.Entry{Kind: journal.Mapping, Name: remote})
}

func (j journaled) RemoveSendTargetPortal(ctx context.Context, portal win.SendTargetPortal) error {
	if err := j.Machine.RemoveSendTargetPortal(ctx, portal); err != nil {
		return err
	}
	return j.journal.Remove(journal.Entry{Kind: journal.Portal, Name: portal.Portal.String()})
}
