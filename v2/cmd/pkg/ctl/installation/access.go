package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

// Access says who can change a file or folder.
type Access struct {
	Owner   string // a SID
	Allowed sddl.List
	Link    bool // it leads elsewhere
}

// AccessOf returns the access to a file or folder. On other systems than Windows it returns scm.ErrNotWindows.
func AccessOf(path string) (Access, error) { return accessOf(path) }

// trustedInstaller owns the files of Windows.
// https://learn.microsoft.com/windows/win32/secauthz/well-known-sids
const trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"

// trusted reports whether an account is as powerful as a service. CREATOR OWNER and OWNER RIGHTS stand for the owner,
// who is checked.
func trusted(sid string) bool {
	builtIn := strings.HasPrefix(sid, "S-1-5-21-") && strings.HasSuffix(sid, "-500") // the account Administrator
	return builtIn || slices.Contains([]string{sddl.LocalSystem, sddl.Administrators, trustedInstaller, "S-1-3-0", "S-1-3-4"}, sid)
}

// What lets an account decide what a path leads to.
// https://learn.microsoft.com/windows/win32/fileio/file-access-rights-constants
const (
	replaceIt = 0x10000 | 0x40000 | 0x80000 // DELETE, WRITE_DAC, WRITE_OWNER
	// changeFile adds FILE_WRITE_DATA and FILE_APPEND_DATA.
	changeFile = replaceIt | 0x2 | 0x4
	// replaceIn adds FILE_DELETE_CHILD. Users may create folders in C:\, which is harmless.
	replaceIn = replaceIt | 0x40
	// changeFolder adds FILE_ADD_FILE and FILE_ADD_SUBDIRECTORY: who plants a library beside a program runs in it.
	changeFolder = replaceIn | 0x2 | 0x4
)

// ExposureError says how others than LocalSystem, Administrators and TrustedInstaller can change a file.
type ExposureError struct {
	Path   string // that they can change: the file, its folder or one above
	Reason string
	Remedy string
}

func (e *ExposureError) Error() string { return e.Path + " " + e.Reason }

// Protected returns an *ExposureError if others can change a file, or exchange it or a folder on the way to it. Parts that
// do not exist, and other systems than Windows, are fine.
func Protected(file string, of func(string) (Access, error)) error {
	return protected(file, changeFile, changeFolder, of)
}

// FolderProtected is Protected of a folder in which others may write, but which they must not exchange.
func FolderProtected(folder string, of func(string) (Access, error)) error {
	return protected(folder, replaceIn, replaceIn, of)
}

func protected(path string, rights, rightsAbove uint32, of func(string) (Access, error)) error {
	for ; path != ""; path, rights, rightsAbove = above(path), rightsAbove, replaceIn {
		access, err := of(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, scm.ErrNotWindows):
			return nil
		case err != nil:
			return fmt.Errorf("read who can change %s: %w", path, err)
		case access.Link:
			return &ExposureError{path, "is a link", "use the path that it leads to"}
		case !trusted(access.Owner):
			return &ExposureError{path, "belongs to " + accountName(access.Owner), "icacls " + quoted(path) + " /setowner *" + sddl.Administrators}
		}
		for _, entry := range access.Allowed {
			if entry.Flags&sddl.InheritOnly == 0 && entry.Rights()&rights != 0 && !trusted(entry.SID) {
				return &ExposureError{path, "can be changed by " + accountName(entry.SID), restrict(path)}
			}
		}
	}
	return nil
}

// restrict is a command for cmd.exe and PowerShell that leaves a path to administrators. Users can read it.
func restrict(path string) string {
	return "icacls " + quoted(path) + ` /inheritance:r /grant:r "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F" "*S-1-5-32-545:(OI)(CI)RX"`
}

// quoted is a path for cmd.exe and PowerShell. A backslash at the end, which only a root has, would escape the quote.
func quoted(path string) string {
	if strings.HasSuffix(path, `\`) {
		return path
	}
	return `"` + path + `"`
}

// above returns the folder that holds a path, and "" above a root.
func above(path string) string {
	path = strings.TrimRight(path, `\/`)
	i := strings.LastIndexAny(path, `\/`)
	switch {
	case i < 0 || strings.HasPrefix(path, `\\`) && strings.Count(path, `\`) < 4: // \\server\share
		return ""
	case i == len(`C:`) && path[1] == ':':
		return path[:i+1]
	default:
		return path[:i]
	}
}

// accountName is the English name of an account that every machine has, or the SID.
func accountName(sid string) string {
	if name := map[string]string{
		sddl.Everyone: "Everyone", sddl.AuthenticatedUsers: "Authenticated Users", sddl.Users: "Users",
	}[sid]; name != "" {
		return name + " (" + sid + ")"
	}
	return sid
}
