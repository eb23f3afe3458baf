//go:build unix

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const lifePath = `C:\var\lib\kubelet\plugins\csi-proxyctl-life`

// TestLife_Undo: after a failed step no mount and no folder is left, the disk is as before,
// and the next run works.
func TestLife_Undo(t *testing.T) {
	for call, step := range map[string]string{"FlushVolume": "write its cache", "ExtendVolume": "grow the volume to the maximum", "SetMountPoint": "mount the volume", "Remove": "remove the folders"} {
		t.Run(call, func(t *testing.T) {
			n := startNode(t, winsim.Default())
			fault := n.inject(t, winsim.Fault{Call: call, Times: 1, Error: 1117})
			r := run(t.Context(), n.dir, "", "volume", "life", "--disk", "3", "--yes", "-o", "json")
			if r.code != command.ExitFailure || !strings.Contains(r.err, step+": ") || !strings.Contains(r.err, "disk 3 has a file system now") {
				t.Errorf("got %+v", r)
			}
			var steps []struct{ Step, Result string }
			if err := json.Unmarshal([]byte(r.out), &steps); err != nil {
				t.Fatalf("%v in %s", err, r.out)
			}
			failed := false
			for _, s := range steps {
				failed = failed || s.Step == step && s.Result == "failed"
			}
			if !failed {
				t.Errorf("no step failed: %v", steps)
			}
			if fault.Hits() == 0 {
				t.Error("the fault was not hit")
			}
			fault.Remove()
			n.expect(t, "false", "fs", "exists", lifePath)
			n.expect(t, "true", "fs", "exists", `C:\var\lib\kubelet\plugins`)
			n.expect(t, "online", "disk", "state", "3")
			if r := run(t.Context(), n.dir, "", "volume", "life", "--disk", "1", "--yes"); r.code != command.ExitOK {
				t.Errorf("second run: %+v", r)
			}
		})
	}
}

// TestLife_Interrupted: the error names the interrupted step, and the earlier ones are undone.
func TestLife_Interrupted(t *testing.T) {
	n := startNode(t, winsim.Default())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	fault := n.inject(t, winsim.Fault{Call: "FlushVolume", Times: 1, Delay: time.Hour, Do: func(*winsim.Node) { interrupt() }})
	var out, errs bytes.Buffer
	code := command.Run(ctx, []string{"--endpoint-dir", n.dir, "volume", "life", "--disk", "3", "--yes"}, command.Environment{
		Out: writerFunc(func(b []byte) (int, error) {
			if bytes.Contains(b, []byte("failed")) {
				fault.Remove() // the server completes the call, then unmounts
			}
			return out.Write(b)
		}),
		Err: &errs, Getenv: func(string) string { return "" },
	})
	if code != command.ExitInterrupted || !strings.Contains(errs.String(), "write its cache: interrupted; the server may still complete the change") || !strings.Contains(out.String(), "undo: unmount the volume") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	n.expect(t, "false", "fs", "exists", lifePath)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestLife_SaysWhatItLeaves: the errors name what could not be undone.
func TestLife_SaysWhatItLeaves(t *testing.T) {
	n := startNode(t, winsim.Default())
	n.inject(t, winsim.Fault{Call: "FlushVolume", Error: 1117}) // unmounting flushes, too
	r := run(t.Context(), n.dir, "", "volume", "life", "--disk", "3", "--yes")
	if r.code != command.ExitFailure || !strings.Contains(r.err, "undo: unmount the volume: ") || !strings.Contains(r.err, "disk 3 has a file system now") {
		t.Errorf("got %+v", r)
	}
}

// TestLife_KeepsWhatIsNotItsOwn: a folder that appears during the prompt stays.
func TestLife_KeepsWhatIsNotItsOwn(t *testing.T) {
	n := startNode(t, winsim.Default())
	path := lifePath + `\mount`
	var out, errs bytes.Buffer
	code := command.Run(t.Context(), []string{"--endpoint-dir", n.dir, "volume", "life", "--disk", "3"}, command.Environment{
		CanAsk: true,
		In: readerFunc(func(b []byte) (int, error) {
			n.expect(t, path+": created", "fs", "mkdir", path)
			return copy(b, "y\n"), io.EOF
		}),
		Out: &out, Err: &errs, Getenv: func(string) string { return "" },
	})
	if code != command.ExitFailure || !strings.Contains(errs.String(), path+" exists") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	n.expect(t, "true", "fs", "exists", path)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestPrompts_EndWithTheInterrupt: an interrupt ends the prompt.
func TestPrompts_EndWithTheInterrupt(t *testing.T) {
	n := startNode(t, winsim.Default())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var errs bytes.Buffer
	code := command.Run(ctx, []string{"--endpoint-dir", n.dir, "volume", "life", "--disk", "3"}, command.Environment{
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
