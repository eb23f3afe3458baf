package windows_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// answer is a question that is being asked.
type answer struct{ *testing.T }

// ask asks one question of a group. Whatever happens to it, the next one can be asked.
func (g *group) ask(id string, do func(*answer)) {
	g.Helper()
	g.Run(id, func(t *testing.T) { do(&answer{t}) })
}

// fact records a value that is equal on equal machines, as an attribute of the test.
func (a *answer) fact(name string, value any) {
	a.Helper()
	// Attributes have neither spaces in their names nor line breaks in their values.
	a.Attr(strings.ReplaceAll(name, " ", "_"), strings.ReplaceAll(text(value), "\n", "; "))
}

// measured logs a value that differs from run to run.
func (a *answer) measured(name string, value any) {
	a.Helper()
	a.Logf("%s: %s", name, text(value))
}

// must ends the question if err is one.
func (a *answer) must(err error) {
	a.Helper()
	must(a.T, err)
}

// cannotError is why a machine cannot be asked something. It is not a failure.
type cannotError struct{ reason string }

func (c cannotError) Error() string { return c.reason }

func cannotf(format string, args ...any) error { return cannotError{fmt.Sprintf(format, args...)} }

// must ends the test if err is one. A cannotError skips it.
func must(t *testing.T, err error) {
	t.Helper()
	skipIfCannot(t, err)
	require.NoError(t, err)
}

// skipIfCannot ends the test if err is why the machine cannot be asked.
func skipIfCannot(t *testing.T, err error) {
	t.Helper()
	if cannot, ok := errors.AsType[cannotError](err); ok {
		t.Skip(cannot.reason)
	}
}

// text is a value as an answer shows it: the same on every machine that behaves alike.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return "ok" // no error
	case error:
		return errorText(value)
	case bool:
		if value {
			return "yes"
		}
		return "no"
	case time.Duration:
		return strconv.FormatInt(value.Milliseconds(), 10) + " ms"
	default:
		return fmt.Sprint(value)
	}
}

// errorText is the code of an error with its meaning, without operation and object.
func errorText(err error) string {
	var (
		code    winerr.Code
		storage winerr.StorageCode
		legacy  winerr.LegacyFormatCode
	)
	switch {
	case errors.As(err, &storage):
		return storage.Error()
	case errors.As(err, &legacy):
		return legacy.Error()
	case errors.As(err, &code):
		return code.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	default:
		return winerr.Cause(err).Error()
	}
}
