package cim

import (
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"

	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// scope collects references that COM has given us. They are released at its end.
type scope []*ole.VARIANT

func (s *scope) end() {
	for _, held := range slices.Backward(*s) {
		_ = held.Clear()
	}
	*s = nil
}

func (s *scope) get(object *ole.IDispatch, name string) (*ole.VARIANT, error) {
	return s.hold(oleutil.GetProperty(object, name))
}

func (s *scope) call(object *ole.IDispatch, name string, arguments ...any) (*ole.VARIANT, error) {
	return s.hold(oleutil.CallMethod(object, name, arguments...))
}

func put(object *ole.IDispatch, name string, value any) error {
	var s scope
	defer s.end()
	_, err := s.hold(oleutil.PutProperty(object, name, value))
	return err
}

func (s *scope) hold(value *ole.VARIANT, err error) (*ole.VARIANT, error) {
	if err != nil {
		return nil, wrap(err)
	}
	*s = append(*s, value)
	return value, nil
}

// errUnexpected is E_UNEXPECTED: the answer is not what WMI documents.
const errUnexpected winerr.Code = 0x8000FFFF

// object takes the object out of an answer. It is valid until the end of the scope.
func (s *scope) object(value *ole.VARIANT, err error) (*ole.IDispatch, error) {
	if err != nil {
		return nil, err
	}
	object := value.ToIDispatch()
	if object == nil {
		return nil, errUnexpected
	}
	return object, nil
}

// class returns a class. A missing class is not WMINotFound, which callers retry.
// https://learn.microsoft.com/windows/win32/wmisdk/swbemservices-get
func (s *scope) class(services *ole.IDispatch, name string) (*ole.IDispatch, error) {
	class, err := s.object(s.call(services, "Get", name))
	if errors.Is(err, winerr.WMINotFound) {
		err = &Error{errInvalidClass, "class " + name}
	}
	return class, err
}

// find returns the instances of an object, and how many there are.
// https://learn.microsoft.com/windows/win32/wmisdk/swbemservices-execquery
func (s *scope) find(services *ole.IDispatch, object Object) (found *ole.IDispatch, count int, err error) {
	if found, err = s.object(s.call(services, "ExecQuery", wql(object))); err != nil {
		return nil, 0, err
	}
	value, err := s.get(found, "Count")
	if err != nil {
		return nil, 0, err
	}
	number, ok := scalar(value.Value()).(int64)
	if !ok {
		return nil, 0, errUnexpected
	}
	return found, int(number), nil
}

func (s *scope) instance(services *ole.IDispatch, object Object) (*ole.IDispatch, error) {
	found, count, err := s.find(services, object)
	if err != nil {
		return nil, err
	}
	for i := range count {
		instance, err := s.object(s.call(found, "ItemIndex", int32(i)))
		if err != nil || object.Empty == "" {
			return instance, err
		}
		value, err := s.propertyIfAny(instance, object.Empty)
		if err != nil {
			return nil, err
		}
		if text, isText := value.(string); value == nil || isText && text == "" {
			return instance, nil
		}
	}
	return nil, winerr.WMINotFound
}

// propertyIfAny reads a property, or returns nil if the class does not have it: older versions
// of Windows have fewer.
func (s *scope) propertyIfAny(object *ole.IDispatch, name string) (any, error) {
	value, err := s.property(object, name)
	if winerr.CodeOf(err) == winerr.WMINotFound {
		return nil, nil //nolint:nilnil // nil is a value
	}
	return value, err
}

// parameters builds the parameters of a method. They go by their names, because their
// order changes between versions of Windows. WMI answers WMINotFound for a method or a
// parameter that it does not have, too (Wine's dlls/wbemprox/tests/query.c and
// dlls/wbemdisp/tests/wbemdisp.c), which for callers would mean that the object is gone.
// https://learn.microsoft.com/windows/win32/wmisdk/swbemobject-execmethod-
func (s *scope) parameters(class *ole.IDispatch, method string, in map[string]any) (*ole.IDispatch, error) {
	methods, err := s.object(s.get(class, "Methods_"))
	if err != nil {
		return nil, err
	}
	definition, err := s.object(s.call(methods, "Item", method))
	if errors.Is(err, winerr.WMINotFound) {
		err = &Error{errInvalidMethod, "method " + method}
	}
	if err != nil {
		return nil, err
	}
	declared, err := s.object(s.get(definition, "InParameters"))
	if err != nil {
		return nil, err
	}
	parameters, err := s.object(s.call(declared, "SpawnInstance_"))
	if err != nil {
		return nil, err
	}
	properties, err := s.object(s.get(parameters, "Properties_"))
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value := in[name]
		optional, isOptional := value.(Optional)
		if isOptional {
			value = bool(optional)
		}
		property, err := s.object(s.call(properties, "Item", name))
		if errors.Is(err, winerr.WMINotFound) {
			if isOptional {
				continue
			}
			err = &Error{winerr.InvalidParameter, "parameter " + name + " of method " + method}
		}
		if err != nil {
			return nil, err
		}
		if err := put(property, "Value", value); err != nil {
			return nil, err
		}
	}
	return parameters, nil
}

func (s *scope) property(object *ole.IDispatch, name string) (any, error) {
	properties, err := s.object(s.get(object, "Properties_"))
	if err != nil {
		return nil, err
	}
	property, err := s.object(s.call(properties, "Item", name))
	if err != nil {
		return nil, err
	}
	value, err := s.get(property, "Value")
	if err != nil {
		return nil, err
	}
	if array := value.ToArray(); array != nil { // https://learn.microsoft.com/windows/win32/wmisdk/arrays
		return array.ToValueArray(), nil
	}
	return value.Value(), nil
}

// wrap makes an Error of what go-ole returns.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	oleError := (*ole.OleError)(nil)
	if !errors.As(err, &oleError) {
		return err
	}
	var exception ole.EXCEPINFO
	_ = errors.As(oleError.SubError(), &exception) // its code is 0 if there is none
	text := oleError.Description()
	if text == "<nil>" { // go-ole's word for none
		text = ""
	}
	return failure(hresult(err), exception.SCODE(), text)
}

func hresult(err error) uint32 {
	if oleError := (*ole.OleError)(nil); errors.As(err, &oleError) {
		return uint32(oleError.Code() & math.MaxUint32)
	}
	return 0
}

// steady runs f with so much of the stack in use, and so much left, that it neither grows
// nor shrinks, and thus stays where it is: go-ole gives COM addresses of variables on the
// stack in a form that Go does not correct when it moves them.
//
//go:noinline
func steady(f func()) {
	var room [64 << 10]byte
	f()
	runtime.KeepAlive(&room)
}
