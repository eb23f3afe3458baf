// Package calllog logs the calls to a machine at -v=6. It shows a developer who does not have the machine what Windows
// has answered there.
//
// The log never has a secret: win.Secret does not print, and of errors of calls with a secret only the code is logged.
// Of what was read from a disk it has only the length.
package calllog

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const verbosity = 6

// Machine returns a machine that logs the calls to m. At a lower verbosity it is m itself, so that calls cost nothing.
func Machine(m win.Machine) win.Machine {
	if !klog.V(verbosity).Enabled() {
		return m
	}
	return win.Intercept(m, logCall)
}

func logCall(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	log := klog.FromContext(ctx).V(verbosity)
	if !log.Enabled() {
		return next(ctx)
	}
	start := time.Now()
	err := next(ctx)
	values := []any{"took", time.Since(start), "method", c.Method}
	entry := c.Entry()
	if entry != "" {
		values = append(values, "entry", entry)
	}
	secret := false
	for _, a := range c.Args() {
		secret = secret || slices.Contains(secretTypes, reflect.TypeOf(a.Value))
		if entry == "" || a.Name != "name" { // which the entry ends with
			values = append(values, a.Name, shown(a.Value))
		}
	}
	switch {
	case err == nil && c.Result != nil:
		values = append(values, "result", shown(c.Result))
	case err != nil:
		values = append(values, "code", uint32(winerr.CodeOf(err)))
		if !secret { // which the text could repeat
			values = append(values, "err", err)
		}
	}
	log.Info("Windows call", values...)
	return err
}

// secretTypes are the arguments of the seam that have a secret. A test looks for others.
var secretTypes = []reflect.Type{reflect.TypeFor[win.Secret](), reflect.TypeFor[win.Login](), reflect.TypeFor[win.SMBMappingRequest]()}

// shown is a value as the log has it: of data and of directories only the length, and paths as text.
func shown(value any) any {
	switch value := value.(type) {
	case win.Path:
		return value.String()
	case []byte:
		return fmt.Sprintf("%d bytes", len(value))
	case *[]byte:
		return shown(*value)
	case *[]win.DirEntry:
		return len(*value)
	default:
		return value
	}
}
