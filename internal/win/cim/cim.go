// Package cim calls methods of WMI classes, for the few things that Windows offers in no
// other way: formatting a volume is one, connecting to a share for the whole machine another.
//
// WMI is reached through COM, and nothing of COM leaves this package: requests and answers
// are Go values, failures carry winerr codes. Importing it does nothing. COM is started by
// the first call, on OS threads of its own, which keep their connections.
//
// A call to WMI cannot be interrupted either. When a caller's context ends first, the call
// keeps its thread, and another thread replaces it.
package cim

import (
	"cmp"
	"context"
)

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
	// About is what calls to it can hang on, such as a server. If it is empty, Call uses
	// Value and Query nothing.
	About string
}

// Call calls a method of an object, with parameters by their names; those that are not
// given keep their defaults. It returns what the method returns, which means something
// else in each class. The object must be a class, for static methods, or one instance; if
// several match, the first is used.
//
// Parameters can be strings, booleans, also Optional ones, and unsigned numbers.
//
// For an instance that does not exist it returns winerr.WMINotFound. After any other error the
// method may have done its work or not. While an abandoned call is stuck, others About the same
// fail with winerr.Unavailable. For instances that is their Value: classes identify the same
// volume by different properties, but by the same name.
func Call(ctx context.Context, object Object, method string, parameters map[string]any) (uint32, error) {
	in, err := variants(parameters)
	if err != nil {
		return 0, err
	}
	var result uint32
	err = threadsFor(object, method).do(ctx, cmp.Or(object.About, object.Value), func(c connection) (err error) {
		result, err = c.call(object, method, in)
		return err
	})
	if err != nil {
		return 0, err // result still belongs to the thread
	}
	return result, nil
}

// Query returns properties of all instances of an object: strings, booleans, int64, []int64 or
// nil, which is also a property that the class does not have. Numbers of 64 bits are strings, as
// WMI gives them to scripts.
func Query(ctx context.Context, object Object, properties ...string) ([]map[string]any, error) {
	var instances []map[string]any
	err := threadsFor(object, "").do(ctx, object.About, func(c connection) (err error) {
		instances, err = c.query(object, properties)
		return err
	})
	if err != nil {
		return nil, err // instances still belong to the thread
	}
	return instances, nil
}

// Abandoned returns how many calls their callers have given up on since the start of the
// program.
func Abandoned() (n int64) {
	for _, p := range pools {
		n += p.calls.Abandoned()
	}
	return n
}

// Stuck returns how many of them have not returned, and keep an OS thread each.
func Stuck() (n int) {
	for _, p := range pools {
		n += p.calls.Stuck()
	}
	return n
}

// connection is a thread's connection to WMI. It is used and closed on that thread.
type connection interface {
	call(object Object, method string, in map[string]any) (uint32, error)
	query(object Object, properties []string) ([]map[string]any, error)
	close()
}

// Calls that wait for other machines have threads of their own, and more of them: a dead server
// holds one for up to a minute, and must not delay formatting. Half of them are for servers
// that are known to answer. Queries about the same classes ask no server, and must not wait for
// those calls. A scan of a volume takes hours, and must not delay formatting either.
var (
	threads        = newPool(connect, maxThreads, maxStuck)
	repairThreads  = newPool(connect, maxThreads, maxStuck)
	networkThreads = newPool(connect, 16, 12).reserve(8, 6)
	networkQueries = newPool(connect, maxThreads, maxStuck)

	pools = []*pool{threads, repairThreads, networkThreads, networkQueries}
)

// threadsFor returns the threads for a method of an object, or for a query if that is empty.
func threadsFor(object Object, method string) *pool {
	switch {
	case object.Namespace != SMB && method == "Repair":
		return repairThreads
	case object.Namespace != SMB:
		return threads
	case method == "":
		return networkQueries
	default:
		return networkThreads
	}
}
