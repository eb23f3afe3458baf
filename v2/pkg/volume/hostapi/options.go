package api

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// FormatOptions say how a new file system differs from what Windows makes by default. Zero values
// leave the choice to Windows.
type FormatOptions struct {
	// FileSystem is NTFS, which is the default, or ReFS. Editions of Windows that cannot make ReFS refuse it.
	FileSystem string
	// AllocationUnitSize is the cluster size in bytes: a power of two from 512 to 2 MiB, of ReFS 4 KiB or 64 KiB.
	// Windows refuses sizes above 64 KiB before Windows Server 2019, and sizes below a sector.
	AllocationUnitSize uint32
	// Label is the name of the file system: at most 32 UTF-16 characters.
	Label string
	// RootAccess says who has access to the root directory: UsersModify, or an access list in SDDL
	// such as D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;BU). The list can only allow
	// access. It must give LocalSystem (SY) and Administrators (BA) full access (FA) to the root
	// and everything in it (OICI).
	RootAccess string
}

// UsersModify lets members of Users create, change and delete everything on the volume. Pods that
// run as ContainerUser are such members. By default, they can create only directories in the root.
const UsersModify = "users-modify"

// Check returns an error for which errors.Is(err, fs.ErrInvalid) holds if a value is wrong.
func (o FormatOptions) Check() error {
	_, err := o.settings()
	return winerr.As(winerr.Invalid, "check format options", "", err, "")
}

// formatSettings are checked options.
type formatSettings struct {
	win.FormatOptions
	rootAccess string // in SDDL
}

func (o FormatOptions) settings() (formatSettings, error) {
	access, accessErr := parseRootAccess(o.RootAccess)
	name, nameErr := parseFileSystem(o.FileSystem)
	return formatSettings{win.FormatOptions{FileSystem: name, ClusterSize: o.AllocationUnitSize, Label: o.Label}, access},
		cmp.Or(nameErr, checkUnit(name, o.AllocationUnitSize), checkLabel(o.Label), accessErr)
}

// parseFileSystem returns a name as Windows spells it.
func parseFileSystem(text string) (string, error) {
	switch {
	case text == "" || winpath.Equal(text, ntfsName):
		return ntfsName, nil
	case winpath.Equal(text, refsName):
		return refsName, nil
	default:
		return "", fmt.Errorf("the file system %.20q is neither %s nor %s", text, ntfsName, refsName)
	}
}

// checkUnit accepts what the file system does.
// https://learn.microsoft.com/windows-server/administration/windows-commands/format
// https://learn.microsoft.com/windows-server/storage/refs/refs-overview
func checkUnit(fileSystem string, size uint32) error {
	const least, most = 512, 2 << 20
	const small, large = 4 << 10, 64 << 10
	if fileSystem == refsName {
		if size != 0 && size != small && size != large {
			return fmt.Errorf("the allocation unit size %d is not %d or %d, which ReFS has", size, small, large)
		}
		return nil
	}
	if size != 0 && (size < least || size > most || size&(size-1) != 0) {
		return fmt.Errorf("the allocation unit size %d is not a power of two from %d to %d", size, least, most)
	}
	return nil
}

// checkLabel refuses what tools of Windows refuse in labels, so that they can show and set it. It also
// refuses characters that control a terminal or reverse the reading direction where it is shown.
// https://learn.microsoft.com/windows-server/administration/windows-commands/label
func checkLabel(label string) error {
	const most = 32
	isBad := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(`"*/:<>?\|`, r) }
	switch {
	case !utf8.ValidString(label):
		return errors.New("the label is not UTF-8")
	case winpath.UTF16Len(label) > most:
		return fmt.Errorf("the label %q has more than %d characters", label, most)
	case strings.ContainsFunc(label, isBad):
		return fmt.Errorf(`the label %q has an unprintable character or one of "*/:<>?\|`, label)
	case winpath.Equal(label, unfinishedLabel):
		return fmt.Errorf("the label %q marks formats that were interrupted; choose another one", label)
	}
	return nil
}

func parseRootAccess(text string) (string, error) {
	switch text {
	case "":
		return "", nil
	case UsersModify:
		text = sddl.UsersModify
	}
	list, err := sddl.Parse(text)
	if err != nil {
		return "", fmt.Errorf("the root access is neither %s nor a valid access list: %w", UsersModify, err)
	}
	for name, sid := range map[string]string{"SY": sddl.LocalSystem, "BA": sddl.Administrators} {
		if !hasFullControl(list, sid) {
			return "", fmt.Errorf("the root access does not give %s full access; add (A;OICI;FA;;;%[1]s)", name)
		}
	}
	return list.String(), nil
}

// hasFullControl reports whether one entry gives an account full access to a directory and
// everything in it.
func hasFullControl(list sddl.List, sid string) bool {
	for _, e := range list {
		if e.SID == sid && e.Rights() == sddl.FullAccess && e.Flags == sddl.ToFiles|sddl.ToDirectories {
			return true
		}
	}
	return false
}
