package grpcapi

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// onlyFields refuses a description of an object, as a request, that has other fields than these: the call
// would ignore what the caller wants.
func onlyFields(op string, request proto.Message, names ...protoreflect.Name) (err error) {
	request.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !slices.Contains(names, field.Name()) {
			err = winerr.New(winerr.Invalid, op, "", "the request must not have the field %s", field.Name())
		}
		return err == nil
	})
	return err
}

// empty answers a call whose response has no fields.
func empty[Out, In any](_ *In, err error) (*Out, error) {
	if err != nil {
		return nil, err
	}
	return new(Out), nil
}

// responseOf returns an empty response if a call has failed. gRPC sends only the error then.
func responseOf[Response any](response *Response, err error) (*Response, error) {
	if err != nil {
		return new(Response), err
	}
	return response, nil
}
