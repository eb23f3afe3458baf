//go:build unix

package command_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestNode_HTML: the page has what the tree has. The tests of package webpage look at the rest.
func TestNode_HTML(t *testing.T) {
	n := startNode(t, winsim.Busy())
	r := run(t.Context(), n.dir, "", "node", "-o", "html")
	if r.code != 0 || r.err != "" || !strings.HasPrefix(r.out, "<!DOCTYPE html>\n") {
		t.Fatalf("exit code %d: %s%.100s", r.code, r.err, r.out)
	}
	for _, want := range []string{
		"WINSIM-NODE-1", "WINSIM0005", `C:\var\lib\kubelet\pods\db-0\volumes\kubernetes.io~csi\db\mount`,
		"csi-proxyctl volume resize b0570000-0000-0000-0000-000000000005 max",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

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

// TestWeb_Hung: while disks hang, the address is there at once, and the page in time.
func TestWeb_Hung(t *testing.T) {
	t.Parallel()
	n := startNode(t, hungModel(3))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, _ := io.Pipe()
	printed, out := io.Pipe()
	began, code := time.Now(), make(chan int, 1)
	go func() {
		code <- command.Run(ctx, []string{"web", "--endpoint-dir", n.dir}, command.Environment{
			In: in, Out: out, Err: io.Discard, After: time.After, Getenv: func(string) string { return "" },
		})
		out.Close()
	}()
	lines := bufio.NewScanner(printed)
	if !lines.Scan() || time.Since(began) > viewLimit/2 {
		t.Fatalf("no address after %s", time.Since(began))
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, lines.Text(), http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if took := time.Since(began); err != nil || took > viewLimit || !bytes.Contains(page, []byte("disk 6")) || !bytes.Contains(page, []byte(podUID(2))) {
		t.Errorf("after %s: %v, %s", took, err, page)
	}
	cancel()
	if got := <-code; got != command.ExitOK {
		t.Errorf("exit code %d", got)
	}
}

// TestWeb_NoNode: a node that does not answer is an error at the start, not an empty page.
func TestWeb_NoNode(t *testing.T) {
	if r := run(t.Context(), "/none", "", "web"); r.code != command.ExitUnreachable || r.out != "" {
		t.Errorf("got %+v", r)
	}
}
