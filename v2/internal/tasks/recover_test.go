package tasks_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
)

func TestRecover(t *testing.T) {
	failure := errors.New("disk 3 is gone")
	for name, c := range map[string]struct {
		do      func(context.Context) error
		want    string
		wantLog string
	}{
		"success": {do: func(context.Context) error { return nil }},
		"failure": {do: func(context.Context) error { return failure }, want: "disk 3 is gone"},
		"panic":   {do: func(context.Context) error { panic("index 7\ngoroutine 1") }, want: "internal error; see the csi-proxy log: panic: index 7", wantLog: "recover_test.go"},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
			var got string
			if err := tasks.Recover(ctx, c.do); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("error %q, want %q", got, c.want)
			}
			if !strings.Contains(log.String(), c.wantLog) || (c.wantLog == "" && log.Len() > 0) {
				t.Errorf("the log is %q, want one with %q", log.String(), c.wantLog)
			}
		})
	}
}
