package local

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Build is the build of Windows, such as 10.0.20348.
func Build() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}
