package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

const (
	// maxFailures is how many failed calls are remembered. Drivers repeat the same few.
	maxFailures = 64
	// failureTime is how long a call that is not repeated counts as one that failed lately.
	failureTime = time.Hour
)

// asksWhetherMounted is the method whose error is how it says that nothing is mounted.
const asksWhetherMounted = "GetVolumeIDFromTargetPath"

// looks are the methods that csi-proxyctl calls to look at a node, whether there is such a thing or not.
var looks = []string{"DescribeNode", "GetService", "ListDirectory", "PathExists"}

// Failures remembers the last calls that failed and that no later one like it has made good: what a pod that waits for
// its volume waits for. It has no secrets. The zero value is ready to use; of nil nothing is remembered.
type Failures struct {
	any atomic.Bool
	mu  sync.Mutex
	all []failure // the last one at the end
}

// failure is a call that has failed, at a time that no change of the clock moves.
type failure struct {
	*extensionv1.FailedCall
	at time.Time
}

// note takes a call that has ended.
func (f *Failures) note(ctx context.Context, now time.Time, method string, request any, err error) {
	if f == nil || err == nil && !f.any.Load() {
		return
	}
	code := status.Code(err)
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if code == codes.Canceled || code == codes.Unimplemented || name == asksWhetherMounted || slices.Contains(looks, name) && ofPeople(ctx) {
		return
	}
	method = strings.TrimPrefix(method, "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && !slices.ContainsFunc(f.all, func(c failure) bool { return c.Method == method }) {
		return
	}
	call := failure{&extensionv1.FailedCall{Unix: now.Unix(), Method: method, Request: fieldsOf(request), Code: code.String(), Times: 1}, now}
	if i := slices.IndexFunc(f.all, func(c failure) bool { return c.Method == method && c.Request == call.Request }); i >= 0 {
		call.Times += f.all[i].Times
		f.all = slices.Delete(f.all, i, i+1)
	}
	if err != nil {
		call.Error = oneLine(status.Convert(err).Message())
		f.all = append(f.all[max(0, len(f.all)-maxFailures+1):], call)
	}
	f.any.Store(len(f.all) > 0)
}

// ofPeople reports whether a request came from csi-proxyctl.
func ofPeople(ctx context.Context) bool {
	agents := metadata.ValueFromIncomingContext(ctx, "user-agent")
	return slices.ContainsFunc(agents, func(agent string) bool { return strings.HasPrefix(agent, extensionv1.Operator) })
}

// List returns the failed calls, the last one first. No one may change them.
func (f *Failures) List(now time.Time) (calls []*extensionv1.FailedCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(c failure) bool { return now.Sub(c.at) > failureTime })
	for _, c := range slices.Backward(f.all) {
		calls = append(calls, c.FailedCall)
	}
	return calls
}

// fieldsOf returns what the log has of a request.
func fieldsOf(request any) string {
	var text strings.Builder
	for i, value := range loggable(request) {
		separator := " "
		if i%2 == 1 {
			separator = "="
		}
		if i > 0 {
			text.WriteString(separator)
		}
		fmt.Fprint(&text, value)
	}
	return oneLine(text.String())
}
