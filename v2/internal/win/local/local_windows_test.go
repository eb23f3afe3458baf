package local_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The tests of this package that run on any Windows machine are in test/windows.

func BenchmarkRemove(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	dir, err := local.Machine().OpenDirectory(ctx, win.Following(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := dir.CreateDirectory(ctx, "x"); err != nil {
			b.Fatal(err)
		}
		if err := dir.Remove(ctx, "x"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLockFormat: the lock of a volume spans processes, and knows that its owner has ended.
func TestLockFormat(t *testing.T) {
	const another = "CSI_PROXY_TEST_LOCK"
	const id = win.VolumeID(`\\?\Volume{00000000-1111-2222-3333-444444444444}\`)
	m := local.Machine()
	try := func() (win.FormatLock, error) { return m.LockFormat(t.Context(), id) }
	if os.Getenv(another) != "" {
		_, err := try()
		require.NoError(t, err)
		_, _ = os.Stdout.WriteString("taken\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
		return
	}
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockFormat$")
	process.Env = append(os.Environ(), another+"=1")
	output, err := process.StdoutPipe()
	require.NoError(t, err)
	_, err = process.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	_, err = output.Read(make([]byte, 1))
	require.NoError(t, err)
	if _, err := try(); winerr.CodeOf(err) != winerr.WaitTimeout {
		t.Errorf("while another process has it: %v, want code 258", err)
	}
	require.NoError(t, process.Process.Kill())
	_ = process.Wait() // it was killed
	for _, abandoned := range []bool{true, false} {
		lock, err := try()
		require.NoError(t, err)
		if lock.Abandoned != abandoned {
			t.Errorf("abandoned = %v, want %v", lock.Abandoned, abandoned)
		}
		if _, err := try(); winerr.CodeOf(err) != winerr.WaitTimeout {
			t.Errorf("while this process has it: %v, want code 258", err)
		}
		lock.Release()
	}
}
