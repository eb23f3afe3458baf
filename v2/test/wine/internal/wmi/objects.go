package wmi

import (
	"context"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// locator is SWbemLocator.
type locator struct{ server *Server }

func (l locator) get(_ context.Context, member string, args []any) (any, error) {
	switch member {
	case "connectserver": // Server, Namespace
		path := args[1].(string)
		path, namespace, ok := lookup(l.server.namespaces, path)
		if !ok {
			return nil, errInvalidNamespace
		}
		return services{l.server, path, namespace}, nil
	default:
		return nil, fault{errMemberNotFound}
	}
}

// security is SWbemSecurity, which the daemon writes and does not read. Only the daemon asks the node.
type security struct{}

func (security) get(context.Context, string, []any) (any, error) { //nolint:unparam // of object
	return nil, fault{errMemberNotFound}
}

func (security) put(string, any) error { return nil }

// services is SWbemServices, a connection to a namespace.
type services struct {
	server    *Server
	path      string
	namespace Namespace
}

func (s services) get(ctx context.Context, member string, args []any) (any, error) {
	switch member {
	case "get":
		path := args[0].(string)
		name, class, ok := lookup(s.namespace, path)
		if !ok {
			return nil, winerr.WMINotFound
		}
		return wbemObject{server: s.server, path: s.path + ":" + name, class: class}, nil
	case "execquery":
		text := args[0].(string)
		s.server.logf("%s: %s", s.path, text)
		return s.query(ctx, text)
	case "security_":
		return security{}, nil
	default:
		return nil, fault{errMemberNotFound}
	}
}

func (s services) query(ctx context.Context, text string) (object, error) {
	q, err := parseQuery(text)
	if err != nil {
		return nil, err
	}
	name, class, ok := lookup(s.namespace, q.class)
	if !ok {
		return nil, errInvalidClass
	}
	var found objectSet
	if class.Instances == nil {
		return found, nil
	}
	instances, err := class.Instances(ctx)
	if err != nil {
		return nil, err
	}
	for _, values := range instances {
		if q.matches(values) {
			found = append(found, wbemObject{server: s.server, path: s.path + ":" + name, class: class, instance: true, values: values})
		}
	}
	return found, nil
}

// objectSet is SWbemObjectSet.
type objectSet []wbemObject

func (s objectSet) get(_ context.Context, member string, args []any) (any, error) {
	switch member {
	case "count":
		return int32(len(s)), nil
	case "itemindex":
		i := args[0].(int32)
		if i < 0 || int(i) >= len(s) {
			return nil, winerr.WMINotFound
		}
		return s[i], nil
	default:
		return nil, fault{errMemberNotFound}
	}
}

// wbemObject is SWbemObject: a class, an instance of it, or the parameters or results of a
// method.
type wbemObject struct {
	server   *Server
	path     string
	class    Class
	instance bool
	values   Values // its properties
}

func (o wbemObject) get(ctx context.Context, member string, args []any) (any, error) {
	switch member {
	case "properties_":
		return propertySet(o.values), nil
	case "methods_":
		return methodSet{o}, nil
	case "spawninstance_":
		return wbemObject{server: o.server, path: o.path, class: o.class, instance: true, values: maps.Clone(o.values)}, nil
	case "execmethod_":
		return o.execute(ctx, args)
	default:
		return nil, fault{errMemberNotFound}
	}
}

// execute calls a method, with the object that has its parameters if there are any.
func (o wbemObject) execute(ctx context.Context, args []any) (object, error) {
	name := args[0].(string)
	name, method, ok := lookup(o.class.Methods, name)
	if !ok {
		return nil, errInvalidMethod
	}
	in := Values{}
	if len(args) > 1 {
		parameters := args[1].(wbemObject)
		for name, value := range parameters.values {
			if value != nil {
				in[name] = value
			}
		}
	}
	var self Values
	if o.instance {
		self = o.values
	}
	out, err := method.Call(ctx, self, in)
	o.server.logf("%s.%s with %v: %v, %v", o.path, name, slices.Sorted(maps.Keys(in)), out, err)
	if err != nil {
		return nil, err
	}
	return wbemObject{server: o.server, path: o.path + "." + name, instance: true, values: out}, nil
}

// methodSet is SWbemMethodSet.
type methodSet struct{ of wbemObject }

func (s methodSet) get(_ context.Context, member string, args []any) (any, error) {
	if member != "item" {
		return nil, fault{errMemberNotFound}
	}
	name := args[0].(string)
	name, method, ok := lookup(s.of.class.Methods, name)
	if !ok {
		return nil, winerr.WMINotFound
	}
	return methodDefinition{s.of.server, s.of.path + "." + name, method}, nil
}

// methodDefinition is SWbemMethod.
type methodDefinition struct {
	server *Server
	path   string
	method Method
}

func (m methodDefinition) get(_ context.Context, member string, _ []any) (any, error) {
	switch {
	case member != "inparameters":
		return nil, fault{errMemberNotFound}
	case len(m.method.In) == 0:
		return nil, nil
	}
	values := Values{}
	for _, name := range m.method.In {
		values[name] = nil
	}
	return wbemObject{server: m.server, path: m.path, values: values}, nil
}

// propertySet is SWbemPropertySet.
type propertySet Values

func (s propertySet) get(_ context.Context, member string, args []any) (any, error) {
	if member != "item" {
		return nil, fault{errMemberNotFound}
	}
	name := args[0].(string)
	name, _, ok := lookup(s, name)
	if !ok {
		return nil, winerr.WMINotFound
	}
	return property{Values(s), name}, nil
}

// property is SWbemProperty.
type property struct {
	of   Values
	name string
}

func (p property) get(_ context.Context, member string, _ []any) (any, error) {
	if member != "value" {
		return nil, fault{errMemberNotFound}
	}
	return p.of[p.name], nil
}

func (p property) put(member string, value any) error {
	if member != "value" {
		return fault{errMemberNotFound}
	}
	p.of[p.name] = value
	return nil
}
