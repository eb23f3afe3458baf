package local

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// errInvalidData is ERROR_INVALID_DATA, for drivers whose answers make no sense.
const errInvalidData winerr.Code = 13

func ask[T any](d win.Device, access winapi.Access, query winapi.Query, decode func([]byte) (T, error)) (T, error) {
	var none T
	device, err := winapi.Open(string(d), access)
	if err != nil {
		return none, err
	}
	defer device.Close()
	answer, err := device.Query(query)
	if err != nil {
		return none, err
	}
	value, err := decode(answer)
	if err != nil {
		return none, fmt.Errorf("%w: %w", errInvalidData, err)
	}
	return value, nil
}

// tell opens a device and sends a request that has no answer.
func tell(d win.Device, access winapi.Access, code winapi.ControlCode, in []byte) error {
	device, err := winapi.Open(string(d), access)
	if err != nil {
		return err
	}
	defer device.Close()
	return device.Control(code, in)
}
