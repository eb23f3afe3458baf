package serve_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// remote calls any version of a group through that version's own client. The versions
// differ in the names of types, methods and fields, and in whether disk numbers are
// numbers or text, but not in meaning; so a caller names things as the newest version
// does, and remote finds what this version calls them.
type remote struct {
	client any
}

// dialRemote connects to an endpoint with a published constructor.
func dialRemote(t *testing.T, newClient func(pipePath string) (any, error), dir, group, version string) remote {
	t.Helper()
	client, err := newClient(endpointPath(dir, group, version))
	// These constructors give up after seconds, in which a busy machine need not have a free instance of a pipe.
	for end := time.Now().Add(time.Minute); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end); {
		client, err = newClient(endpointPath(dir, group, version))
	}
	must(t, err)
	t.Cleanup(func() { _ = client.(interface{ Close() error }).Close() })
	return remote{client}
}

// untyped makes constructors of different clients fit one table.
func untyped[C any](newClient func(string) (C, error)) func(string) (any, error) {
	return func(path string) (any, error) { return newClient(path) }
}

// olderNames are what older versions call a method or field.
var olderNames = map[string][]string{
	"CreateSymlink": {"LinkPath"},
	"IsSymlink":     {"IsMountPoint"},

	"GetDiskState": {"GetAttachState"},
	"GetDiskStats": {"DiskStats"},
	"SetDiskState": {"SetAttachState"},

	"GetDiskNumberFromVolumeID": {"GetVolumeDiskNumber"},
	"GetVolumeIDFromTargetPath": {"GetVolumeIDFromMount"},
	"GetVolumeStats":            {"VolumeStats"},
	"UnmountVolume":             {"DismountVolume"},

	"disk_number": {"diskID", "disk_id", "diskNumber"},
	"is_online":   {"isOnline"},
	"size_bytes":  {"size"},
	"target_path": {"path", "mount"},
	"total_bytes": {"diskSize", "volumeSize"},
	"used_bytes":  {"volumeUsedSize"},
}

// has reports whether this version has a method at all.
func (r remote) has(method string) bool { return r.method(method).IsValid() }

func (r remote) method(name string) reflect.Value {
	for _, name := range append([]string{name}, olderNames[name]...) {
		if method := reflect.ValueOf(r.client).MethodByName(name); method.IsValid() {
			return method
		}
	}
	return reflect.Value{}
}

// fields are a request's fields by their newest names.
type fields map[string]any

func (r remote) call(ctx context.Context, name string, values fields) (response, error) {
	method := r.method(name)
	request := reflect.New(method.Type().In(1).Elem())
	fill(request.Interface().(proto.Message).ProtoReflect(), values)
	out := method.Call([]reflect.Value{reflect.ValueOf(ctx), request})
	if err, _ := reflect.TypeAssert[error](out[1]); err != nil {
		return response{}, err
	}
	return response{out[0].Interface().(proto.Message).ProtoReflect()}, nil
}

// fill sets the fields that this version has. A message inside is given as fields, too.
func fill(message protoreflect.Message, values fields) {
	for name, value := range values {
		field := findField(message, name)
		if field == nil {
			continue
		}
		if inner, ok := value.(fields); ok {
			fill(message.Mutable(field).Message(), inner)
			continue
		}
		message.Set(field, fieldValue(field, value))
	}
}

func findField(m protoreflect.Message, name string) protoreflect.FieldDescriptor {
	for _, name := range append([]string{name}, olderNames[name]...) {
		if field := m.Descriptor().Fields().ByName(protoreflect.Name(name)); field != nil {
			return field
		}
	}
	return nil
}

// fieldValue writes numbers as text where the version wants text.
func fieldValue(field protoreflect.FieldDescriptor, value any) protoreflect.Value {
	if number, ok := value.(uint32); ok && field.Kind() == protoreflect.EnumKind {
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(number))
	}
	if number, ok := value.(uint32); ok && field.Kind() == protoreflect.StringKind {
		value = strconv.FormatUint(uint64(number), 10)
	}
	return protoreflect.ValueOf(value)
}

// response reads fields by their newest names.
type response struct{ message protoreflect.Message }

// get returns a field's value; integers of all kinds become int64, lists stay lists.
func (r response) get(t *testing.T, name string) any {
	t.Helper()
	field := findField(r.message, name)
	if field == nil {
		t.Fatalf("%s has no field %s", r.message.Descriptor().FullName(), name)
	}
	switch value := r.message.Get(field).Interface().(type) {
	case uint32:
		return int64(value)
	default:
		return value
	}
}

// errNoMethod is the error for a method that a version does not have.
var errNoMethod = errors.New("this version has no such method")

// olderVersion lets a client of the newest version call another one. Of maps it keeps the keys.
type olderVersion struct{ remote }

func (o olderVersion) Invoke(ctx context.Context, method string, in, out any, _ ...grpc.CallOption) error {
	name := method[strings.LastIndexByte(method, '/')+1:]
	if !o.has(name) {
		return fmt.Errorf("%s: %w", name, errNoMethod)
	}
	got, err := o.call(ctx, name, fieldsOf(in.(proto.Message).ProtoReflect()))
	if err != nil {
		return err
	}
	answer := out.(proto.Message).ProtoReflect()
	for i := range answer.Descriptor().Fields().Len() {
		to := answer.Descriptor().Fields().Get(i)
		from := findField(got.message, string(to.Name()))
		if from == nil {
			continue
		}
		switch value := got.message.Get(from).Interface().(type) {
		case protoreflect.List:
			for i := range value.Len() {
				answer.Mutable(to).List().Append(value.Get(i))
			}
		case protoreflect.Map:
			value.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
				number, err := strconv.ParseUint(key.String(), 10, 32)
				keys := answer.Mutable(to).Map()
				keys.Set(protoreflect.ValueOfUint32(uint32(number)).MapKey(), keys.NewValue())
				return err == nil
			})
		default:
			answer.Set(to, got.message.Get(from))
		}
	}
	return nil
}

func (olderVersion) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	panic("no version has streams")
}

func fieldsOf(message protoreflect.Message) fields {
	values := fields{}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch value := value.Interface().(type) {
		case protoreflect.Message:
			values[string(field.Name())] = fieldsOf(value)
		case protoreflect.EnumNumber:
			values[string(field.Name())] = uint32(value)
		default:
			values[string(field.Name())] = value
		}
		return true
	})
	return values
}
