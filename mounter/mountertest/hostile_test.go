package mountertest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestRefused: what cannot be done has the same class in both modes, says what to do in the words of the
// mounter, and changes nothing.
func TestRefused(t *testing.T) {
	stageDisk := func(query mounter.Disk) func(k *kit) error {
		return func(k *kit) error { return k.stage(func(r *mounter.StageRequest) { r.Source = query }) }
	}
	for name, c := range map[string]struct {
		prepare, run func(k *kit) error
		class        failure.Class
		says         string
	}{
		"a path that is not text":     {run: func(k *kit) error { return k.Publish(k.ctx, staging, target+"\xff") }, class: failure.Invalid, says: "UTF-8"},
		"a key that is not text":      {run: stageDisk(mounter.Disk{Serial: "\xff"}), class: failure.Invalid, says: "UTF-8"},
		"a password that is not text": {run: func(k *kit) error { return k.stageShare(func(s *mounter.SMB) { s.Password = "\xff" }) }, class: failure.Invalid, says: "UTF-8"},
		"publish at the staging path": {
			prepare: func(k *kit) error { return k.stage() },
			run:     func(k *kit) error { return k.Publish(k.ctx, staging, "/"+staging[3:]+"/") }, class: failure.Invalid, says: "staging path",
		},
		"publish over a file": {prepare: func(k *kit) error {
			k.must(k.stage())
			return k.node.WriteFile(target, "precious")
		}, run: func(k *kit) error { return k.Publish(k.ctx, staging, target) }, class: failure.InUse, says: "move them away"},
		"unpublish a file": {
			prepare: func(k *kit) error { return k.node.WriteFile(target, "precious") }, run: unpublish, class: failure.InUse, says: "move them away",
		},
		"unstage a folder with content": {
			prepare: func(k *kit) error { return k.node.WriteFile(staging+`\precious`, "data") }, run: (*kit).unstage, class: failure.InUse, says: "move them away",
		},
		"mount a folder that is not there": {
			run: func(k *kit) error { return k.Mount(staging, target, "", []string{"bind"}) }, class: failure.NotFound, says: staging,
		},
		"stats while the server is down": {prepare: downServer, run: func(k *kit) error { return second(k.Stats(k.ctx, target)) }, class: failure.Unavailable, says: "53"},
		"expand while the server is down": {
			prepare: downServer, run: func(k *kit) error { return second(k.Expand(k.ctx, target, 0)) }, class: failure.Unavailable, says: "53",
		},
		"publish while the server is down": {
			prepare: downServer, run: func(k *kit) error { return k.Publish(k.ctx, staging, target+"2") }, class: failure.Unavailable, says: "53",
		},
		"stats of a path that cannot be":  {run: func(k *kit) error { return second(k.Stats(k.ctx, "/a/../b")) }, class: failure.NotFound, says: "relative"},
		"expand of a path that cannot be": {run: func(k *kit) error { return second(k.Expand(k.ctx, `C:\a:b`, 0)) }, class: failure.NotFound, says: `C:\a:b`},
		"stats of no path":                {run: func(k *kit) error { return second(k.Stats(k.ctx, "")) }, class: failure.Invalid, says: "empty"},
		"a share without slashes":         {run: func(k *kit) error { return k.stageShare(func(s *mounter.SMB) { s.Remote = "files/data" }) }, class: failure.Invalid, says: "not a share"},
		"no source":                       {run: func(k *kit) error { return k.stage(func(r *mounter.StageRequest) { r.Source = nil }) }, class: failure.Invalid, says: "Disk, SMB or ISCSI"},
		"a nil disk":                      {run: func(k *kit) error { return k.stage(func(r *mounter.StageRequest) { r.Source = (*mounter.Disk)(nil) }) }, class: failure.Invalid, says: "Disk, SMB or ISCSI"},
		"an empty share":                  {run: func(k *kit) error { return k.stageShare(func(s *mounter.SMB) { s.Remote = "" }) }, class: failure.Invalid, says: "no name"},
		"unstage a disk without keys": {
			run: func(k *kit) error {
				return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: mounter.Disk{}})
			}, class: failure.Invalid, says: "no keys",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			inBothModes(t, func(k *kit) {
				if c.prepare != nil {
					k.must(c.prepare(k))
				}
				before := k.state()
				err := c.run(k)
				if failure.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "force") {
					k.t.Errorf("got %s: %v, want %s with %q", failure.ClassOf(err), err, c.class, c.says)
				}
				for _, other := range failure.Classes() {
					if other != c.class && errors.Is(err, other) {
						k.t.Errorf("%v is %s, too", err, other)
					}
				}
				if after := k.state(); after != before {
					k.t.Errorf("it changed\n%sto\n%s", before, after)
				}
				texts = append(texts, err.Error())
			})
			if len(slices.Compact(texts)) > 1 {
				t.Errorf("the modes differ: %q", texts)
			}
		})
	}
}

// TestDeadline: the error of a call whose time runs out says at which step.
func TestDeadline(t *testing.T) {
	eachMode(t, attachedNode, func(k *kit) {
		k.must(k.node.HangDisk(1))
		ctx, cancel := context.WithTimeout(k.ctx, 200*time.Millisecond)
		defer cancel()
		err := second(k.Stage(ctx, mounter.StageRequest{Path: staging, Source: number(1)}))
		k.wantClass("a disk that hangs", err, failure.Deadline)
		_, step, _ := strings.Cut(fmt.Sprint(err), staging+": ")
		if at, _, ok := strings.Cut(step, ": context deadline exceeded"); !ok || at == "" || strings.Contains(step, "RST_STREAM") {
			k.t.Errorf("%v names no step", err)
		}
	})
}

// downServer publishes a share whose server then goes.
func downServer(k *kit) error {
	k.must(publishShare(k))
	return k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down = true })
}

// TestEndedContext: every verb returns the class of a context that has ended, and changes nothing.
func TestEndedContext(t *testing.T) {
	var texts [][]string
	inBothModes(t, func(k *kit) {
		k.must(k.stage())
		before := k.state()
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		bound := k.WithContext(ctx)
		var all []string
		for i, err := range []error{
			second(k.Stage(ctx, mounter.StageRequest{Path: staging + "2", Source: number(2)})), stageShareWith(ctx, k),
			k.Unstage(ctx, mounter.UnstageRequest{Path: staging}), k.Publish(ctx, staging, target), k.Unpublish(ctx, target),
			second(k.Expand(ctx, staging, 0)), second(k.NeedsResize(ctx, staging)), second(k.Stats(ctx, staging)),
			second(bound.List()), second(bound.GetMountRefs(staging)), bound.Mount("2", staging+"2", "", nil), bound.Unmount(staging),
			second(bound.IsMountPoint(staging)), second(k.FindDisk(ctx, number(1))), second(k.DiskBytes(ctx, 1)), second(k.StagedAt(ctx, staging)),
			second(k.Exists(ctx, staging)), k.MakeDir(ctx, target), second(k.Condition(ctx, staging)),
		} {
			if failure.ClassOf(err) != failure.Cancelled {
				k.t.Errorf("verb %d: %v", i, err)
				continue
			}
			all = append(all, err.Error())
		}
		if k.state() != before {
			k.t.Errorf("it changed\n%sto\n%s", before, k.state())
		}
		texts = append(texts, all)
	})
	if len(texts) == 2 && !slices.Equal(texts[0], texts[1]) {
		t.Errorf("the modes differ:\n%q\n%q", texts[0], texts[1])
	}
}

// TestDaemon_Hangs: a daemon that does not answer holds no call longer than its own context, also if
// another call waits for the same pipe.
func TestDaemon_Hangs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it uses sockets, not pipes")
	}
	dir := t.TempDir()
	var silent net.ListenConfig
	listener, err := silent.Listen(t.Context(), "unix", filepath.Join(dir, "pipe"))
	must(t, err)
	defer listener.Close()
	m, err := mounter.New(t.Context(), mounter.WithPipePaths(func(string, string) string { return filepath.Join(dir, "pipe") }))
	must(t, err)
	defer m.Close()
	long, end := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- second(m.Stats(long, staging)) }()
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second(m.Stats(short, staging)); failure.ClassOf(err) != failure.Cancelled {
		t.Errorf("a call whose context has ended: %v", err)
	}
	end()
	if err := <-first; failure.ClassOf(err) != failure.Cancelled {
		t.Errorf("the other call: %v", err)
	}
}
