// Package klogtest has what is logged in a test.
package klogtest

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// Context returns a context, and what is logged to it at the default verbosity.
func Context(t testing.TB) (context.Context, *strings.Builder) {
	t.Helper()
	log := &strings.Builder{}
	return klog.NewContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})), log
}
