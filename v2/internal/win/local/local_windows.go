package local

import (
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// machine implements win.Machine. It has no state.
type machine struct{ win.NoBounds }

var thisMachine win.Machine = machine{}

// Build is the build of Windows, such as 10.0.20348.
func Build() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}
