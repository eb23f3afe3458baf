package daemon

import (
	"fmt"
	"os"
)

// fillStreams opens NUL as each standard stream that the process does not have: a service has
// none. With strict handle checks, a write to a missing stream would end the process. Packages keep
// os.Stderr from their start, so its content changes, not the variable.
func fillStreams() error {
	for _, stream := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if stream == nil { // it has no handle at all
			continue
		}
		if _, err := stream.Stat(); err == nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("open %s as %s: %w", os.DevNull, stream.Name(), err)
		}
		_ = stream.Close() // otherwise the garbage collector closes what is not open
		*stream = *null
	}
	return nil
}
