package remote

import (
	"cmp"
	"context"
	"go/token"
	"reflect"
	"strings"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// method is a method of a generated client.
type method[Request, Response any] = func(context.Context, *Request, ...grpc.CallOption) (*Response, error)

// extended calls a service that a daemon may lack. Then it asks the service for nothing, which only a service that is there
// refuses in another way; otherwise the object is what is not supported.
func extended[Request, Response any](ctx context.Context, call method[Request, Response], request *Request, lacking missing) (*Response, error) {
	response, err := call(ctx, request)
	if isUnsupported(err) {
		if _, nothing := call(ctx, new(Request)); isUnsupported(nothing) {
			err = lacking.err()
		}
	}
	return response, err
}

// ask is a method of a group whose messages have the fields of the library's.
func ask[Out, In, Request, Response any](ctx context.Context, call method[Request, Response], in *In) (*Out, error) {
	out, request := new(Out), new(Request)
	if in == nil {
		return out, errNoRequest
	}
	if field := fill(reflect.ValueOf(request).Elem(), reflect.ValueOf(in).Elem()); field != "" {
		return out, failed(failure.Unsupported, "call daemon", "", "its API has no %s", field)
	}
	response, err := call(ctx, request)
	if err == nil {
		fill(reflect.ValueOf(out).Elem(), reflect.ValueOf(response).Elem())
	}
	return out, err
}

var errNoRequest = failed(failure.Invalid, "call daemon", "", "the request is missing")

// fill sets what has the same name, but for its case, in another value: Go writes VolumeID, and protoc VolumeId. It returns
// the name of a field that is set and that the other one does not have, or "".
func fill(to, from reflect.Value) (lacking string) {
	switch from.Kind() {
	case reflect.Struct:
		for i := range from.NumField() {
			field := from.Type().Field(i)
			if !field.IsExported() || from.Field(i).IsZero() {
				continue
			}
			same := to.FieldByNameFunc(func(name string) bool { return token.IsExported(name) && strings.EqualFold(name, field.Name) })
			if !same.IsValid() {
				lacking = field.Name
				continue
			}
			lacking = cmp.Or(fill(same, from.Field(i)), lacking)
		}
	case reflect.Pointer:
		if from.IsNil() {
			break
		}
		if to.Kind() == reflect.Pointer {
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		return fill(to, from.Elem())
	case reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			fill(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		for _, key := range from.MapKeys() {
			value := reflect.New(to.Type().Elem()).Elem()
			fill(value, from.MapIndex(key))
			to.SetMapIndex(key, value)
		}
	default: // numbers and texts, whose types can have names; a location has another form
		if from.CanConvert(to.Type()) {
			to.Set(from.Convert(to.Type()))
		}
	}
	return lacking
}
