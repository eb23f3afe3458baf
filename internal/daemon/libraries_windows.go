package daemon

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// systemLibrariesOnly keeps a library that somebody has put beside the program, or on the
// path, from being loaded into a process of LocalSystem.
func systemLibrariesOnly() error {
	if err := winapi.SystemLibrariesOnly(); err != nil {
		return fmt.Errorf("restrict the search for libraries: %w", err)
	}
	return nil
}
