package daemon

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// systemLibrariesOnly loads libraries from the system directory only. A library planted beside the
// program or on the path would run as LocalSystem.
func systemLibrariesOnly() error {
	if err := winapi.SystemLibrariesOnly(); err != nil {
		return fmt.Errorf("restrict the search for libraries: %w", err)
	}
	return nil
}
