// Package cim calls methods of WMI classes, for the few things that Windows offers in no
// other way: formatting a volume is one, connecting to a share for the whole machine another.
//
// WMI is reached through COM, and nothing of COM leaves this package: requests and answers
// are Go values, failures carry winerr codes. Importing it does nothing. COM is started by
// the first call, on OS threads of its own, which keep their connections.
//
// A call to WMI cannot be interrupted: it returns when WMI answers, also if its context ends
// before. Callers who cannot wait make it on a goroutine of its own. Threads replace those that hang,
// so that no call stops others.
package cim

import "context"

// Namespaces.
const (
	// V2 has the older classes: Win32_Volume, Win32_BIOS.
	V2 = `root\cimv2`
	// Storage has the storage management classes: MSFT_Volume, MSFT_Disk.
	Storage = `root\Microsoft\Windows\Storage`
	// SMB has the classes of the SMB client: MSFT_SmbGlobalMapping.
	SMB = `root\Microsoft\Windows\SMB`
)

// Object is what a request is about: a class, or those of its instances that have Value
// in Property.
type Object struct {
	Namespace string
	Class     string
	Property  string
	Value     string
	// Empty names a property that must have no value in the instance that Call uses.
	Empty string
}

// Call calls a method of an object, with parameters by their names; those that are not
// given keep their defaults. It returns what the method returns, which means something
// else in each class. The object must be a class, for static methods, or one instance; if
// several match, the first is used.
//
// Parameters can be strings, booleans, also Optional ones, and unsigned numbers.
//
// For an instance that does not exist it returns winerr.WMINotFound. After any other error the
// method may have done its work or not.
func Call(ctx context.Context, object Object, method string, parameters map[string]any) (uint32, error) {
	in, err := variants(parameters)
	if err != nil {
		return 0, err
	}
	var result uint32
	err = threadsFor(object, method).do(ctx, func(c connection) (err error) {
		result, err = c.call(object, method, in)
		return err
	})
	return result, err
}

// Query returns properties of all instances of an object: strings, booleans, int64, []int64 or
// nil, which is also a property that the class does not have. Numbers of 64 bits are strings, as
// WMI gives them to scripts.
func Query(ctx context.Context, object Object, properties ...string) ([]map[string]any, error) {
	var instances []map[string]any
	err := threadsFor(object, "").do(ctx, func(c connection) (err error) {
		instances, err = c.query(object, properties)
		return err
	})
	return instances, err
}

// connection is a thread's connection to WMI. It is used and closed on that thread.
type connection interface {
	call(object Object, method string, in map[string]any) (uint32, error)
	query(object Object, properties []string) ([]map[string]any, error)
	close()
}

// Calls that wait for other machines have threads of their own, and more of them: a dead server
// holds one for up to a minute, and must not delay formatting. Queries about the same classes ask
// no server, and must not wait for those calls.
var (
	threads        = newPool(connect, 8)
	networkThreads = newPool(connect, 16)
	networkQueries = newPool(connect, 8)
)

// threadsFor returns the threads for a method of an object, or for a query if that is empty.
func threadsFor(object Object, method string) *pool {
	switch {
	case object.Namespace != SMB:
		return threads
	case method == "":
		return networkQueries
	default:
		return networkThreads
	}
}
