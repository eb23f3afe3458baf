package protected

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// noFollow opens a link itself. Go knows the flag since 1.26.
const noFollow = syscall.FILE_FLAG_OPEN_REPARSE_POINT

const directoryAccess = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"

func mkdirAll(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	return winapi.CreateDirectory(dir, directoryAccess)
}
