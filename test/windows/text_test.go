package windows_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

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
