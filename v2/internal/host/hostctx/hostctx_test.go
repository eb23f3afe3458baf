package hostctx_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
)

type hostAPI interface{ Name() string }

type request struct{}

// plain is a host that knows nothing of contexts.
type plain struct{}

func (plain) Name() string { return "plain" }

// bindable is a host that does.
type bindable struct {
	ctx context.Context //nolint:containedctx // this is what being bound means
}

func (b bindable) Name() string { return "bindable" }

func (b bindable) WithContext(ctx context.Context) hostAPI { return bindable{ctx} }

// otherwise has a method of that name that is not ours.
type otherwise struct{ plain }

func (otherwise) WithContext(string) hostAPI { panic("called") }

func TestBegin_Binds(t *testing.T) {
	ctx := t.Context()
	if host, err := hostctx.Begin[hostAPI](ctx, "test", plain{}, &request{}); err != nil || host != hostAPI(plain{}) {
		t.Errorf("a host without WithContext: %v, %v, want the host itself", host, err)
	}
	if host, err := hostctx.Begin[hostAPI](ctx, "test", otherwise{}, &request{}); err != nil || host != hostAPI(otherwise{}) {
		t.Errorf("a host with another WithContext: %v, %v, want the host itself", host, err)
	}
	original := bindable{}
	host, err := hostctx.Begin[hostAPI](ctx, "test", original, &request{})
	if err != nil || host.(bindable).ctx != ctx || original.ctx != nil {
		t.Errorf("a host with WithContext: %v, %v, want it bound to the context", host, err)
	}
}

func TestBegin_ContextIsOver(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-expired.Done()
	for _, host := range []hostAPI{plain{}, bindable{}} {
		for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: expired} {
			if _, err := hostctx.Begin(ctx, "format volume", host, &request{}); !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "format volume: ") {
				t.Errorf("%s host: %v, want an error that is %q and names the work", host.Name(), err, want)
			}
		}
	}
}

func TestBegin_NoRequest(t *testing.T) {
	if _, err := hostctx.Begin[hostAPI, request](t.Context(), "format volume", bindable{}, nil); !errors.Is(err, fs.ErrInvalid) || !strings.HasPrefix(err.Error(), "format volume: ") {
		t.Errorf("without a request: %v, want an error that is %q and names the work", err, fs.ErrInvalid)
	}
}
