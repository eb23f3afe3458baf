package installation

import (
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

func accessOf(path string) (Access, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Access{}, err
	}
	owner, allowed, err := winapi.FileSecurity(path)
	return Access{Owner: owner, Allowed: allowed, Link: info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0}, err
}
