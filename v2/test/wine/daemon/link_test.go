//go:build windows && wine

package daemon

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

var (
	links  = flag.Bool("links", false, "the file system of drive C: stores links; tests that need some are skipped without")
	volume = flag.String("volume", "", "`volume`, Volume{guid}, whose files are in "+volumeFiles+"; cases about mounted folders are skipped without")
)

// whyNoLinks is why tests that need links are skipped, or "". The daemon is not asked: one that has forgotten how to
// make them has to fail.
func whyNoLinks() string {
	if *links {
		return ""
	}
	return "-links is not set: this file system stores none"
}

// volumeFiles is the directory with the files of the volume. It is Wine's way: on Windows the volume would be
// a disk.
const volumeFiles = `C:\volume`

func mountVolume(path string) error {
	if err := os.MkdirAll(volumeFiles, 0o700); err != nil {
		return err
	}
	return makeLink(path, winlayout.MountedFolder(win.VolumeID(`\\?\`+*volume+`\`)))
}

// loseVolume takes the volume away. The next mount brings it back.
func loseVolume() error {
	lost := volumeFiles + ".lost"
	return errors.Join(os.RemoveAll(lost), os.Rename(volumeFiles, lost))
}

// makeLink makes a directory that is a link.
func makeLink(path string, point win.ReparsePoint) error {
	data, encodeErr := winlayout.EncodeReparsePoint(point)
	name, nameErr := windows.UTF16PtrFromString(path)
	if err := errors.Join(encodeErr, nameErr, os.MkdirAll(path, 0o700)); err != nil {
		return err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer windows.CloseHandle(handle)
	var n uint32
	if err := windows.DeviceIoControl(handle, windows.FSCTL_SET_REPARSE_POINT, unsafe.SliceData(data), uint32(len(data)), nil, 0, &n, nil); err != nil {
		return &fs.PathError{Op: "make link", Path: path, Err: err}
	}
	return nil
}
