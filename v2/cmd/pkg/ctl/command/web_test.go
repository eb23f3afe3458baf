//go:build unix

package command_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestWeb: the command prints the address of the page. It ends with Ctrl-C, and with standard input.
func TestWeb(t *testing.T) {
	n := startNode(t, winsim.Busy())
	for name, end := range map[string]func(input io.Closer, interrupt func()){
		"interrupt": func(_ io.Closer, interrupt func()) { interrupt() },
		"input":     func(input io.Closer, _ func()) { input.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in, input := io.Pipe()
			printed, out := io.Pipe()
			var errs bytes.Buffer
			code := make(chan int, 1)
			go func() {
				code <- command.Run(ctx, []string{"web", "--endpoint-dir", n.dir}, command.Environment{
					In: in, Out: out, Err: &errs, After: time.After, Getenv: func(string) string { return "" },
				})
				out.Close()
			}()
			lines := bufio.NewScanner(printed)
			if !lines.Scan() {
				t.Fatalf("no address: %s", errs.String())
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, lines.Text(), http.NoBody)
			require.NoError(t, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			page, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || !bytes.Contains(page, []byte("WINSIM0005")) {
				t.Errorf("%s: %v", page, err)
			}
			end(input, cancel)
			if got := <-code; got != command.ExitOK {
				t.Errorf("exit code %d: %s", got, errs.String())
			}
		})
	}
}
