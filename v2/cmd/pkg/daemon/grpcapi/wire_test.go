package grpcapi_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// The rule behind aliases. An old request is read as the newer one: each of its
// fields must exist there and mean the same. A newer response is read as the old
// one: likewise the other way round. And since the old client expects answers,
// the old response may have nothing that the newer one does not fill, except the
// error text that no server ever sent.
func TestAliases_SameOnTheWire(t *testing.T) {
	aliases := 0
	for _, e := range grpcapi.Endpoints() {
		newer := handlerVersion(describe(e))
		if newer == e.Version {
			continue
		}
		aliases++
		for _, difference := range differences(service(t, e.Group, newer), service(t, e.Group, e.Version)) {
			t.Errorf("%s cannot be an alias of %s: %s", e.Name(), newer, difference)
		}
	}
	if aliases != 13 {
		t.Errorf("there are %d aliases, want 13", aliases)
	}
}

// service returns the descriptor of a group's version.
func service(t *testing.T, group, version string) protoreflect.ServiceDescriptor {
	t.Helper()
	name := protoreflect.FullName(endpoint(t, group+"/"+version).ServiceName())
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	require.NoError(t, err)
	return found.(protoreflect.ServiceDescriptor)
}

// differences returns why the old service cannot be an alias of the newer one.
func differences(newer, old protoreflect.ServiceDescriptor) []string {
	var all []string
	for i := range old.Methods().Len() {
		from := old.Methods().Get(i)
		to := newer.Methods().ByName(from.Name())
		if to == nil {
			all = append(all, fmt.Sprintf("%s: no such method in %s", from.Name(), newer.FullName()))
			continue
		}
		if from.IsStreamingClient() || from.IsStreamingServer() || to.IsStreamingClient() || to.IsStreamingServer() {
			all = append(all, fmt.Sprintf("%s: streams", from.Name()))
		}
		request := string(from.Name()) + ": request field "
		response := string(from.Name()) + ": response field "
		all = append(all, lacking(request, from.Input(), to.Input(), nil)...)
		all = append(all, lacking(response, to.Output(), from.Output(), nil)...)
		all = append(all, lacking(response, from.Output(), to.Output(), isErrorText)...)
	}
	return all
}

func isErrorText(field protoreflect.FieldDescriptor) bool {
	return field.Name() == "error" && field.Kind() == protoreflect.StringKind && !field.IsList()
}

// lacking returns the fields of one message that another does not have with the
// same number, name, kind and cardinality, and the same of messages, maps and
// enums within. Fields for which ignore is true may be missing.
func lacking(where string, from, to protoreflect.MessageDescriptor, ignore func(protoreflect.FieldDescriptor) bool) []string {
	var all []string
	for i := range from.Fields().Len() {
		field := from.Fields().Get(i)
		name := where + string(field.Name())
		twin := to.Fields().ByNumber(field.Number())
		switch {
		case twin == nil && ignore != nil && ignore(field):
		case twin == nil:
			all = append(all, fmt.Sprintf("%s: %s has no field %d", name, to.FullName(), field.Number()))
		case shape(twin) != shape(field):
			all = append(all, fmt.Sprintf("%s: %s here, %s in %s", name, shape(field), shape(twin), to.FullName()))
		case field.Message() != nil:
			all = append(all, lacking(name+".", field.Message(), twin.Message(), nil)...)
		case field.Enum() != nil:
			all = append(all, lackingValues(name, field.Enum(), twin.Enum())...)
		}
	}
	return all
}

// shape is what must be the same for two fields to mean the same.
func shape(field protoreflect.FieldDescriptor) string {
	kind := field.Kind().String()
	if field.IsMap() {
		kind = "map"
	}
	return fmt.Sprintf("%s %s %s = %d", field.Cardinality(), kind, field.Name(), field.Number())
}

func lackingValues(where string, from, to protoreflect.EnumDescriptor) []string {
	var all []string
	for i := range from.Values().Len() {
		value := from.Values().Get(i)
		if twin := to.Values().ByNumber(value.Number()); twin == nil || twin.Name() != value.Name() {
			all = append(all, fmt.Sprintf("%s: %s has no %s = %d", where, to.FullName(), value.Name(), value.Number()))
		}
	}
	return all
}
