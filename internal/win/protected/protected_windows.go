package protected

import (
	"os"
	"path/filepath"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

const (
	directoryAccess = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"
	fileAccess      = "D:P(A;;FA;;;SY)(A;;FA;;;BA)"
)

func mkdirAll(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	return winapi.CreateDirectory(dir, directoryAccess)
}

func openFile(path string) (*os.File, error) { return winapi.OpenFile(path, fileAccess) }
