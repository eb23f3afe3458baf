// Package klogtest has what is logged in a test.
package klogtest

import (
	"bytes"
	"context"
	"flag"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// Context returns a context, and what is logged to it at the default verbosity.
func Context(t testing.TB) (context.Context, *strings.Builder) {
	t.Helper()
	log := &strings.Builder{}
	return klog.NewContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})), log
}

// Verbose sets the verbosity of klog until the end of a test, and returns what is logged without a context's logger.
func Verbose(t testing.TB, v int) *bytes.Buffer {
	t.Helper()
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"v": strconv.Itoa(v), "logtostderr": "false", "stderrthreshold": "FATAL"} {
		require.NoError(t, flags.Set(name, value))
	}
	var log bytes.Buffer
	klog.SetOutput(&log)
	return &log
}
