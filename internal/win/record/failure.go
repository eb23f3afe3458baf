package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Failure is the error of a call. One of the codes or Context is set for all that Windows answers, and
// Kind for what we say ourselves: an internal error if a decoder has refused an answer, and others for a call
// that was not made, such as that too many are stuck.
type Failure struct {
	Windows uint32 `json:"windows,omitzero"`
	Storage uint32 `json:"storage,omitzero"` // of the storage service
	Format  uint32 `json:"format,omitzero"`  // of Win32_Volume.Format
	Context string `json:"context,omitzero"` // canceled or deadline
	Kind    string `json:"kind,omitzero"`
	Text    string `json:"text,omitzero"` // for people; left out if the call has secrets, or names are hashed
}

const (
	canceled = "canceled"
	deadline = "deadline"
)

// failureOf converts the error of a call. Nil stays nil.
func failureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := Failure{Text: err.Error()}
	if code := winerr.StorageCode(0); errors.As(err, &code) {
		f.Storage = uint32(code)
	} else if code := winerr.LegacyFormatCode(0); errors.As(err, &code) {
		f.Format = uint32(code)
	} else if code := winerr.CodeOf(err); code != 0 {
		f.Windows = uint32(code)
	}
	switch {
	case f.Storage+f.Format+f.Windows != 0:
	case errors.Is(err, context.Canceled):
		f.Context = canceled
	case errors.Is(err, context.DeadlineExceeded):
		f.Context = deadline
	default:
		f.Kind = winerr.KindOf(err).String()
	}
	return &f
}

// Err is the error that a host would see.
func (f *Failure) Err() error {
	switch {
	case f == nil:
		return nil
	case f.Windows != 0:
		return winerr.Code(f.Windows)
	case f.Storage != 0:
		return winerr.StorageCode(f.Storage)
	case f.Format != 0:
		return winerr.LegacyFormatCode(f.Format)
	case f.Context == canceled:
		return context.Canceled
	case f.Context == deadline:
		return context.DeadlineExceeded
	default:
		return winerr.New(kindNamed(f.Kind), "replay", "", "%s", cmp.Or(f.Text, f.Kind))
	}
}

func kindNamed(name string) winerr.Kind {
	for _, kind := range winerr.Kinds() {
		if kind.String() == name {
			return kind
		}
	}
	return winerr.Internal
}

// Same reports whether two calls failed alike. Nil is success.
func (f *Failure) Same(other *Failure) bool {
	if f == nil || other == nil {
		return f == other
	}
	a, b := *f, *other
	a.Text, b.Text = "", ""
	return a == b
}

func (f *Failure) String() string {
	if f == nil {
		return "success"
	}
	return fmt.Sprint(f.Err())
}
