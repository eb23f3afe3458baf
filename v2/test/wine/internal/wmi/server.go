package wmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Code is the control code with which the COM server sends its messages:
// FILE_DEVICE_UNKNOWN, METHOD_BUFFERED, FILE_ANY_ACCESS.
const Code = 0x22<<16 | 0x810<<2

// Server keeps the objects that the COM server has given out.
type Server struct {
	namespaces Namespaces
	log        io.Writer // gets a line per query and method

	mu      sync.Mutex
	objects map[uint64]object
	last    uint64
}

// locatorNumber is the object that everybody begins with.
const locatorNumber = 1

// NewServer returns a server over some namespaces.
func NewServer(namespaces Namespaces, log io.Writer) *Server {
	return &Server{namespaces: namespaces, log: log, objects: map[uint64]object{}, last: locatorNumber}
}

type object interface {
	// get reads a property, or calls a method: scripts do not report these apart.
	get(ctx context.Context, member string, args []any) (any, error)
}

// putter is an object with a property that can be written to.
type putter interface {
	put(member string, value any) error
}

func (s *Server) find(number uint64) object {
	if number == locatorNumber {
		return locator{s}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[number]
}

func (s *Server) keep(o object) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.objects[s.last] = o
	return s.last
}

func (s *Server) release(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, number)
}

// Flags of IDispatch::Invoke.
const propertyPut = 4 | 8 // DISPATCH_PROPERTYPUT, DISPATCH_PROPERTYPUTREF

// Answer answers a message of the COM server.
func (s *Server) Answer(ctx context.Context, message []byte) ([]byte, error) {
	r := reader{b: message}
	switch op, number := r.uint16(), r.uint64(); op {
	case opRelease:
		s.release(number)
		return nil, nil
	case opInvoke:
		flags, member := r.uint16(), r.text()
		args := make([]any, r.uint16())
		for i := range args {
			args[i] = r.value(s)
		}
		result, err := s.invoke(ctx, s.find(number), flags, strings.ToLower(member), args)
		return s.encode(result, err), nil
	default:
		return nil, winerr.InvalidParameter
	}
}

func (s *Server) invoke(ctx context.Context, o object, flags uint16, member string, args []any) (any, error) {
	if o == nil {
		return nil, fault{errObjectGone}
	}
	if flags&propertyPut == 0 {
		return o.get(ctx, member, args)
	}
	if p, ok := o.(putter); ok && len(args) == 1 {
		return nil, p.put(member, args[0])
	}
	return nil, fault{errMemberNotFound}
}

// Description is that of all exceptions.
const Description = "The provider has failed."

// fault is an error of the interface itself, in contrast to those of WMI, which come as
// exceptions.
type fault struct{ hresult winerr.Code }

func (f fault) Error() string { return f.hresult.Error() }

// encode builds the answer to OP_INVOKE.
func (s *Server) encode(result any, err error) []byte {
	var w writer
	f, code, description := fault{}, uint32(0), ""
	if err != nil && !errors.As(err, &f) {
		f, code, description = fault{errException}, scode(err), Description
	}
	w.uint32(uint32(f.hresult))
	w.uint32(code)
	w.text(description)
	w.value(s, result)
	return w.b
}

func (s *Server) logf(format string, args ...any) { fmt.Fprintf(s.log, "WMI: "+format+"\n", args...) }
