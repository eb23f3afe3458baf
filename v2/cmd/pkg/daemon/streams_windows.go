package daemon

import (
	"fmt"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// fillStreams opens NUL as each standard stream that the process does not have: a service has
// none. With strict handle checks, a write to a missing stream would end the process. Packages keep
// os.Stderr from their start, so its content changes, not the variable.
func fillStreams() error {
	for _, stream := range []struct {
		*os.File
		number uint32
	}{{os.Stdin, winapi.StandardInput}, {os.Stdout, winapi.StandardOutput}, {os.Stderr, winapi.StandardError}} {
		if stream.File == nil { // it has no handle at all
			continue
		}
		if _, err := stream.Stat(); err == nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err == nil {
			_, err = winapi.SetStandardHandle(stream.number, null.Fd())
		}
		if err != nil {
			return fmt.Errorf("open %s as %s: %w", os.DevNull, stream.Name(), err)
		}
		_ = stream.Close() // otherwise the garbage collector closes what is not open
		*stream.File = *null
	}
	return nil
}

// setStandardError makes a file the standard error of libraries and of Go's runtime. os.Stderr stays what it is.
func setStandardError(file *os.File) (undo func(), err error) {
	before, err := winapi.SetStandardHandle(winapi.StandardError, file.Fd())
	return func() { _, _ = winapi.SetStandardHandle(winapi.StandardError, before) }, err
}
