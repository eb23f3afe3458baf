package cim

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/go-ole/go-ole"
	"golang.org/x/sys/windows"
)

// fakeObject is a COM object written in Go, with what go-ole uses of IDispatch. Its
// members are methods and properties by name; those that write a property end with "=".
// They get arguments as go-ole decodes them, and objects as *fakeObject.
type fakeObject struct {
	vtable  *[7]uintptr
	refs    atomic.Int32
	name    string
	members map[string]member
}

type member func(arguments []any) (any, error)

// exception is an error that a fakeObject raises as COM does.
type exception uint32

func (e exception) Error() string { return fmt.Sprintf("exception %#x", uint32(e)) }

var (
	// fakes keeps all objects where the garbage collector sees them: COM holds them by
	// addresses only.
	fakes sync.Map // *fakeObject

	dispatchIDs sync.Map // name → int32
	lastID      atomic.Int32

	fakeVTable = sync.OnceValue(func() *[7]uintptr {
		return &[7]uintptr{
			windows.NewCallback(func(this *fakeObject, _ uintptr, out **fakeObject) uintptr {
				this.refs.Add(1)
				*out = this
				return 0
			}),
			windows.NewCallback(func(this *fakeObject) uintptr { return uintptr(this.refs.Add(1)) }),
			windows.NewCallback(func(this *fakeObject) uintptr { return uintptr(this.refs.Add(-1)) }),
			0, 0,
			windows.NewCallback(getIDsOfNames),
			windows.NewCallback(invoke),
		}
	})
)

func newFake(name string, members map[string]member) *fakeObject {
	object := &fakeObject{vtable: fakeVTable(), name: name, members: members}
	fakes.Store(object, nil)
	return object
}

// dispatch returns the object as COM sees it, with a reference for the caller.
func (o *fakeObject) dispatch() *ole.IDispatch {
	o.refs.Add(1)
	return (*ole.IDispatch)(unsafe.Pointer(o))
}

// heldFakes returns the names of the objects that were not released.
func heldFakes() (held []string) {
	fakes.Range(func(key, _ any) bool {
		if object := key.(*fakeObject); object.refs.Load() != 0 {
			held = append(held, fmt.Sprintf("%s (%d)", object.name, object.refs.Load()))
		}
		return true
	})
	return held
}

const (
	unknownName     = 0x80020006 // DISP_E_UNKNOWNNAME
	raisedException = 0x80020009 // DISP_E_EXCEPTION
)

func getIDsOfNames(this *fakeObject, _ uintptr, names **uint16, _ uint32, _ uint32, ids *int32) uintptr {
	name := windows.UTF16PtrToString(*names)
	if this.members[name] == nil && this.members[name+"="] == nil {
		return unknownName
	}
	id, _ := dispatchIDs.LoadOrStore(name, lastID.Add(1))
	*ids = id.(int32)
	return 0
}

// exceptionInfo is the part of EXCEPINFO that we fill in; go-ole keeps the fields of its
// own to itself.
type exceptionInfo struct {
	_           [2]uint16
	_           *int16
	description *int16
	_           *int16
	_           uint32
	_           [2]uintptr
	scode       uint32
}

type dispatchParameters struct {
	arguments  *ole.VARIANT // the last one first
	names      *int32
	count      uint32
	namedCount uint32
}

func invoke(this *fakeObject, id int32, _ uintptr, _ uint32, flags uint16, parameters *dispatchParameters, result *ole.VARIANT, info *exceptionInfo, _ uintptr) uintptr {
	var name string
	dispatchIDs.Range(func(key, value any) bool {
		if value.(int32) == id {
			name = key.(string)
		}
		return true
	})
	if flags&ole.DISPATCH_PROPERTYPUT != 0 {
		if parameters.namedCount != 1 || *parameters.names != ole.DISPID_PROPERTYPUT {
			panic("a property is written without saying so")
		}
		name += "="
	}
	var arguments []any
	for _, argument := range unsafe.Slice(parameters.arguments, parameters.count) {
		value := argument.Value()
		if object, ok := value.(*ole.IDispatch); ok {
			value = (*fakeObject)(unsafe.Pointer(object))
		}
		arguments = append([]any{value}, arguments...)
	}
	value, err := this.members[name](arguments)
	if raised := exception(0); errors.As(err, &raised) {
		info.scode = uint32(raised)
		info.description = ole.SysAllocStringLen("as described")
		return raisedException
	}
	switch value := value.(type) {
	case nil:
		*result = ole.NewVariant(ole.VT_NULL, 0)
	case int32:
		*result = ole.NewVariant(ole.VT_I4, int64(value))
	case string:
		*result = ole.NewVariant(ole.VT_BSTR, int64(uintptr(unsafe.Pointer(ole.SysAllocStringLen(value)))))
	case *fakeObject:
		*result = ole.NewVariant(ole.VT_DISPATCH, int64(uintptr(unsafe.Pointer(value.dispatch()))))
	default:
		panic(fmt.Sprintf("unknown type %T", value))
	}
	return 0
}

// fakeWMI is the part of WMI's scripting interface that we use, with one class that has
// one instance and one method.
type fakeWMI struct {
	result int32 // what the method returns
	log    []string
	fail   map[string][]error // raised by the calls of that name, one after the other
	hang   func()             // the method waits for it
}

// called notes a call, and fails it if that is its turn.
func (w *fakeWMI) called(name string, arguments []any) error {
	w.log = append(w.log, strings.TrimSpace(fmt.Sprintln(append([]any{name}, arguments...)...)))
	return w.failure(name)
}

// failure is the error of a call if it is its turn.
func (w *fakeWMI) failure(name string) error {
	if errs := w.fail[name]; len(errs) > 0 {
		w.fail[name] = errs[1:]
		return errs[0]
	}
	return nil
}

// to makes a member that returns an object.
func (w *fakeWMI) to(name string, object func(arguments []any) *fakeObject) member {
	return func(arguments []any) (any, error) {
		if err := w.called(name, arguments); err != nil {
			return nil, err
		}
		return object(arguments), nil
	}
}

func (w *fakeWMI) locate() (*ole.IDispatch, error) {
	return newFake("locator", map[string]member{
		"ConnectServer": w.to("ConnectServer", func([]any) *fakeObject { return w.services() }),
	}).dispatch(), nil
}

func (w *fakeWMI) services() *fakeObject {
	return newFake("services", map[string]member{
		"Security_": w.to("Security_", func([]any) *fakeObject {
			set := func(name string) member {
				return func(arguments []any) (any, error) { return nil, w.called(name, arguments) }
			}
			return newFake("security", map[string]member{
				"ImpersonationLevel=": set("ImpersonationLevel"), "AuthenticationLevel=": set("AuthenticationLevel"),
			})
		}),
		"Get":       w.to("Get", func([]any) *fakeObject { return w.object("class") }),
		"ExecQuery": w.to("ExecQuery", func(arguments []any) *fakeObject { return w.found(arguments[0].(string)) }),
	})
}

func (w *fakeWMI) found(query string) *fakeObject {
	count := int32(1)
	if strings.Contains(query, "unknown") {
		count = 0
	}
	return newFake("set", map[string]member{
		"Count":     func([]any) (any, error) { return count, w.called("Count", nil) },
		"ItemIndex": w.to("ItemIndex", func([]any) *fakeObject { return w.object("instance") }),
	})
}

// object is the class or its instance.
func (w *fakeWMI) object(name string) *fakeObject {
	return newFake(name, map[string]member{
		"Properties_": func([]any) (any, error) { return w.properties(), nil },
		"Methods_": func([]any) (any, error) {
			return newFake("methods", map[string]member{
				"Item": w.to("Methods_.Item", func([]any) *fakeObject {
					return newFake("method", map[string]member{"InParameters": func([]any) (any, error) {
						return newFake("declaration", map[string]member{"SpawnInstance_": func([]any) (any, error) {
							return newFake("parameters", map[string]member{
								"Properties_": func([]any) (any, error) { return w.properties(), nil },
							}), nil
						}}), nil
					}})
				}),
			}), nil
		},
		"ExecMethod_": func(arguments []any) (any, error) {
			for i, argument := range arguments {
				if object, ok := argument.(*fakeObject); ok {
					arguments[i] = object.name
				}
			}
			if err := w.called(name+".ExecMethod_", arguments); err != nil {
				return nil, err
			}
			if w.hang != nil {
				w.hang()
			}
			return newFake("out", map[string]member{
				"Properties_": func([]any) (any, error) { return w.properties(), nil },
			}), nil
		},
	})
}

func (w *fakeWMI) properties() *fakeObject {
	return newFake("properties", map[string]member{
		"Item": func(arguments []any) (any, error) {
			name := arguments[0].(string)
			if err := w.failure("Properties_.Item"); err != nil {
				return nil, err
			}
			return newFake("property", map[string]member{
				"Value": func([]any) (any, error) {
					switch name {
					case "ReturnValue":
						return w.result, nil
					case "Size":
						return "18446744073709551615", nil
					default:
						return nil, nil
					}
				},
				"Value=": func(arguments []any) (any, error) { return nil, w.called(name+" =", arguments) },
			}), nil
		},
	})
}
