package cim

import (
	"errors"
	"math"
	"sync"

	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"
)

// How WMI may act for us, and how calls are protected on the way. Classes that take passwords
// require both. They are the defaults of Windows (Wine's test_locator, dlls/wbemdisp/tests/wbemdisp.c).
// https://learn.microsoft.com/windows/win32/wmisdk/setting-client-application-process-security
const (
	impersonate   = 3 // RPC_C_IMP_LEVEL_IMPERSONATE
	packetPrivacy = 6 // RPC_C_AUTHN_LEVEL_PKT_PRIVACY
)

// client is COM on one thread, and its connections to WMI, through the interface that is
// made for scripts.
// https://learn.microsoft.com/windows/win32/wmisdk/scripting-api-for-wmi
type client struct {
	locator     *ole.IDispatch
	namespaces  map[string]*ole.IDispatch // SWbemServices
	initialized bool
}

// connect starts COM on this thread.
func connect() (connection, error) { return newClient(createLocator) }

func newClient(locate func() (*ole.IDispatch, error)) (connection, error) {
	c := &client{namespaces: map[string]*ole.IDispatch{}}
	var err error
	steady(func() {
		if c.initialized, err = initializeCOM(); err == nil {
			c.locator, err = locate()
		}
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// initializeCOM adds the thread to the multithreaded apartment. It returns whether that has
// to be undone.
// https://learn.microsoft.com/windows/win32/api/combaseapi/nf-combaseapi-coinitializeex
func initializeCOM() (bool, error) {
	const (
		alreadyDone = 1          // S_FALSE
		changedMode = 0x80010106 // RPC_E_CHANGED_MODE: COM was started on the thread in another mode
	)
	err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED)
	code := hresult(err)
	if err != nil && code != alreadyDone && code != changedMode {
		return false, wrap(err)
	}
	initializeSecurity()
	return code != changedMode, nil
}

// initializeSecurity sets the defaults of the process, unless they are set already.
// https://learn.microsoft.com/windows/win32/api/combaseapi/nf-combaseapi-coinitializesecurity
var initializeSecurity = sync.OnceFunc(func() {
	_ = ole.CoInitializeSecurity(-1, packetPrivacy, impersonate, 0)
})

// createLocator makes what connects to namespaces.
// https://learn.microsoft.com/windows/win32/wmisdk/swbemlocator
func createLocator() (*ole.IDispatch, error) {
	unknown, err := oleutil.CreateObject("WbemScripting.SWbemLocator")
	if err != nil {
		return nil, wrap(err)
	}
	defer unknown.Release()
	locator, err := unknown.QueryInterface(ole.IID_IDispatch)
	return locator, wrap(err)
}

func (c *client) close() {
	steady(func() {
		for namespace := range c.namespaces {
			c.disconnect(namespace)
		}
		if c.locator != nil {
			c.locator.Release()
		}
		if c.initialized {
			ole.CoUninitialize()
		}
	})
}

// connectTo returns the connection to a namespace, which stays.
// https://learn.microsoft.com/windows/win32/wmisdk/swbemlocator-connectserver
func (c *client) connectTo(namespace string) (*ole.IDispatch, error) {
	if services := c.namespaces[namespace]; services != nil {
		return services, nil
	}
	var s scope
	defer s.end()
	services, err := s.object(s.call(c.locator, "ConnectServer", ".", namespace))
	if err != nil {
		return nil, err
	}
	// Classes that need more refuse the call; for the others it does not matter.
	if security, err := s.object(s.get(services, "Security_")); err == nil {
		_ = put(security, "ImpersonationLevel", int32(impersonate))
		_ = put(security, "AuthenticationLevel", int32(packetPrivacy))
	}
	services.AddRef() // for longer than the scope
	c.namespaces[namespace] = services
	return services, nil
}

func (c *client) disconnect(namespace string) {
	if services := c.namespaces[namespace]; services != nil {
		services.Release()
		delete(c.namespaces, namespace)
	}
}

// lost reports whether an error means that the connection is broken, and drops it.
func (c *client) lost(namespace string, err error) bool {
	failure := (*Error)(nil)
	if !errors.As(err, &failure) || !failure.disconnected() {
		return false
	}
	c.disconnect(namespace)
	return true
}

func (c *client) call(object Object, method string, in map[string]any) (result uint32, err error) {
	steady(func() {
		for range 2 {
			var executed bool
			result, executed, err = c.tryCall(object, method, in)
			// A method that may have run is not sent again.
			if !c.lost(object.Namespace, err) || executed && mayHaveRun(err) {
				return
			}
		}
	})
	return result, err
}

// tryCall calls a method, and reports whether it was sent.
func (c *client) tryCall(object Object, method string, in map[string]any) (result uint32, executed bool, err error) {
	services, err := c.connectTo(object.Namespace)
	if err != nil {
		return 0, false, err
	}
	var s scope
	defer s.end()
	class, err := s.class(services, object.Class)
	if err != nil {
		return 0, false, err
	}
	target := class
	if object.Property != "" {
		if target, err = s.instance(services, object); err != nil {
			return 0, false, err
		}
	}
	arguments := []any{method}
	if len(in) > 0 {
		parameters, err := s.parameters(class, method, in)
		if err != nil {
			return 0, false, err
		}
		arguments = append(arguments, parameters)
	}
	out, err := s.object(s.call(target, "ExecMethod_", arguments...))
	if err != nil {
		return 0, true, err
	}
	value, err := s.property(out, "ReturnValue")
	if err != nil {
		return 0, true, err
	}
	number, ok := scalar(value).(int64)
	if !ok {
		return 0, true, errUnexpected
	}
	return uint32(number & math.MaxUint32), true, nil // WMI gives it as a signed number
}

func (c *client) query(object Object, properties []string) (instances []map[string]any, err error) {
	steady(func() {
		for range 2 {
			instances, err = c.tryQuery(object, properties)
			if !c.lost(object.Namespace, err) {
				return
			}
		}
	})
	return instances, err
}

func (c *client) tryQuery(object Object, properties []string) ([]map[string]any, error) {
	services, err := c.connectTo(object.Namespace)
	if err != nil {
		return nil, err
	}
	var s scope
	defer s.end()
	found, count, err := s.find(services, object)
	if err != nil {
		return nil, err
	}
	var instances []map[string]any
	for i := range count {
		instance, err := readInstance(found, i, properties)
		if err != nil {
			return nil, err
		}
		instances = append(instances, instance)
	}
	return instances, nil
}

func readInstance(found *ole.IDispatch, i int, properties []string) (map[string]any, error) {
	var s scope
	defer s.end()
	object, err := s.object(s.call(found, "ItemIndex", int32(i))) //nolint:gosec // Count is an int32
	if err != nil {
		return nil, err
	}
	instance := make(map[string]any, len(properties))
	for _, name := range properties {
		value, err := s.propertyIfAny(object, name)
		if err != nil {
			return nil, err
		}
		instance[name] = scalar(value)
	}
	return instance, nil
}
