package dial

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/Microsoft/go-winio"
)

// TestDial_Owner: a pipe of this user is trusted. One that its creator gave to another account is
// not, unless the caller trusts that account.
func TestDial_Owner(t *testing.T) {
	const everyone = "S-1-1-0"
	for _, c := range []struct {
		sddl    string
		owners  []string
		trusted bool
	}{
		{"D:P(A;;GA;;;WD)", nil, true},
		{"O:WDD:P(A;;GA;;;WD)", nil, false},
		{"O:WDD:P(A;;GA;;;WD)", []string{everyone}, true},
	} {
		path := fmt.Sprintf(`\\.\pipe\csi-proxy-dial-test-%d`, os.Getpid())
		listener, err := winio.ListenPipe(path, &winio.PipeConfig{SecurityDescriptor: c.sddl})
		if err != nil {
			t.Fatalf("%s: %v", c.sddl, err)
		}
		received := make(chan int, 1)
		go func() {
			defer close(received)
			server, err := listener.Accept()
			if err != nil {
				return
			}
			defer server.Close()
			n, _ := server.Read(make([]byte, 1))
			received <- n
		}()
		conn, err := Dial(t.Context(), path, c.owners)
		if trusted := err == nil; trusted != c.trusted {
			t.Errorf("%s, owners %v: %v", c.sddl, c.owners, err)
		}
		if err != nil && (!errors.Is(err, ErrUntrustedOwner) || !strings.Contains(err.Error(), everyone)) {
			t.Errorf("%s: %v, want an error that names the owner", c.sddl, err)
		}
		if conn != nil {
			conn.Close()
		}
		listener.Close() // go-winio does not accept a client that has already gone
		if n := <-received; n != 0 {
			t.Errorf("%s: the server received %d bytes", c.sddl, n)
		}
	}
}
