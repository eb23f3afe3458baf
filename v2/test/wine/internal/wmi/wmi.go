// Package wmi is the scripting interface of WMI, as far as the daemon uses it, over classes
// that are given as Go functions. The COM server in test/wine/wmi hands over what the
// daemon asks of SWbemLocator and the objects it leads to.
// https://learn.microsoft.com/windows/win32/wmisdk/scripting-api-object-model
//
// A new class is an entry in a Namespace: its instances as values by the names of their
// properties, and its methods as functions from parameters by name to results by name.
// Storage shows how.
package wmi

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Namespaces are the namespaces of a machine by their paths, such as root\cimv2.
type Namespaces map[string]Namespace

// Namespace is a set of classes by their names.
type Namespace map[string]Class

// Class is a class of WMI.
type Class struct {
	// Instances lists the instances; nil if there are none.
	Instances func(ctx context.Context) ([]Values, error)
	Methods   map[string]Method
}

// Values are values by their names: strings, booleans, int32, []any of these, or nil. Unsigned numbers of
// 32 bits are int32 with the same bits, those of 64 bits strings, as scripts see them.
type Values map[string]any

// Method is a method of a class.
type Method struct {
	// In are the names of its parameters. Others are refused.
	In []string
	// Call calls the method: of an instance, or of the class if self is nil. Among the
	// results is ReturnValue. An error is one of the call, not of the method: a
	// winerr.Code, which may be an HRESULT.
	Call func(ctx context.Context, self, in Values) (Values, error)
}

// HRESULTs, some of them in the field for exceptions.
const (
	errException        winerr.Code = 0x80020009 // DISP_E_EXCEPTION
	errMemberNotFound   winerr.Code = 0x80020003 // DISP_E_MEMBERNOTFOUND
	errObjectGone       winerr.Code = 0x80010108 // RPC_E_DISCONNECTED
	errWbemFailed       winerr.Code = 0x80041001 // WBEM_E_FAILED
	errInvalidNamespace winerr.Code = 0x8004100E // WBEM_E_INVALID_NAMESPACE
	errInvalidClass     winerr.Code = 0x80041010 // WBEM_E_INVALID_CLASS
	errInvalidQuery     winerr.Code = 0x80041017 // WBEM_E_INVALID_QUERY
	errInvalidMethod    winerr.Code = 0x80041055 // WBEM_E_INVALID_METHOD
)

// scode is the code of an exception: an HRESULT, also for plain codes of Windows.
func scode(err error) uint32 {
	switch code := winerr.CodeOf(err); {
	case code == 0:
		return uint32(errWbemFailed)
	case code < 0x10000:
		return 0x80070000 | uint32(code) // HRESULT_FROM_WIN32
	default:
		return uint32(code)
	}
}

// lookup finds something by its name, the case of which does not matter.
func lookup[T any](from map[string]T, name string) (key string, value T, ok bool) {
	for key, value := range from {
		if strings.EqualFold(key, name) {
			return key, value, true
		}
	}
	return "", value, false
}
