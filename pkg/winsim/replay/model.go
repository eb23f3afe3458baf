package replay

import (
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Model is.
func Model(*record.Recording) (winsim.Model, error) { return winsim.Model{}, errors.New("not yet") }
