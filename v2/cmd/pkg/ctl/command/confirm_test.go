//go:build unix

package command_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestPrompts_EndWithTheInterrupt: an interrupt ends the prompt.
func TestPrompts_EndWithTheInterrupt(t *testing.T) {
	n := startNode(t, winsim.Default())
	const path = `C:\var\lib\kubelet\plugins`
	n.expect(t, path+`\x: created`, "fs", "mkdir", path+`\x`) // an empty folder needs no confirmation
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var errs bytes.Buffer
	code := command.Run(ctx, []string{"--endpoint-dir", n.dir, "fs", "rm-contents", path}, command.Environment{
		CanAsk: true,
		In: readerFunc(func([]byte) (int, error) {
			interrupt()
			<-t.Context().Done()
			return 0, io.EOF
		}),
		Out: io.Discard, Err: &errs, Getenv: func(string) string { return "" },
	})
	if code != command.ExitInterrupted || !strings.HasSuffix(errs.String(), "csi-proxyctl: interrupted\n") {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
}
