package api_test

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// describeFile writes all of a file that a caller can see on the wire or in the
// generated names: one header line, then services, enums and messages in the order
// of their declaration.
func describeFile(w *strings.Builder, file protoreflect.FileDescriptor) {
	var imports []string
	for i := range file.Imports().Len() {
		imports = append(imports, file.Imports().Get(i).Path())
	}
	fmt.Fprintf(w, "## %s  syntax=%s package=%s go_package=%q imports=[%s]\n",
		strings.TrimPrefix(file.Path(), repository), file.Syntax(), file.Package(),
		file.Options().(*descriptorpb.FileOptions).GetGoPackage(), strings.Join(imports, " "))
	for i := range file.Services().Len() {
		describeService(w, file.Services().Get(i))
	}
	describeTypes(w, "", file)
}

func describeService(w *strings.Builder, service protoreflect.ServiceDescriptor) {
	fmt.Fprintf(w, "service %s {\n", service.Name())
	for i := range service.Methods().Len() {
		method := service.Methods().Get(i)
		fmt.Fprintf(w, "  rpc %s(%s%s) returns (%s%s);   // /%s/%s\n",
			method.Name(),
			keyword(method.IsStreamingClient(), "stream"), typeName(method.Input(), service),
			keyword(method.IsStreamingServer(), "stream"), typeName(method.Output(), service),
			service.FullName(), method.Name())
	}
	fmt.Fprintf(w, "}\n")
}

// scope is what declares types: a file or, for nested ones, a message.
type scope interface {
	Enums() protoreflect.EnumDescriptors
	Messages() protoreflect.MessageDescriptors
}

func describeTypes(w *strings.Builder, indent string, in scope) {
	for i := range in.Enums().Len() {
		enum := in.Enums().Get(i)
		fmt.Fprintf(w, "%senum %s {", indent, enum.Name())
		for j := range enum.Values().Len() {
			value := enum.Values().Get(j)
			fmt.Fprintf(w, " %s = %d;", value.Name(), value.Number())
		}
		fmt.Fprintf(w, " }\n")
	}
	for i := range in.Messages().Len() {
		// A map field brings a message of its own, which the field's type shows already.
		if message := in.Messages().Get(i); !message.IsMapEntry() {
			describeMessage(w, indent, message)
		}
	}
}

func describeMessage(w *strings.Builder, indent string, message protoreflect.MessageDescriptor) {
	if message.Fields().Len()+message.Messages().Len()+message.Enums().Len() == 0 {
		fmt.Fprintf(w, "%smessage %s {}\n", indent, message.Name())
		return
	}
	fmt.Fprintf(w, "%smessage %s {\n", indent, message.Name())
	describeTypes(w, indent+"  ", message)
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		oneof := field.ContainingOneof()
		switch {
		case oneof == nil || oneof.IsSynthetic():
			describeField(w, indent+"  ", field)
		case oneof.Fields().Get(0) == field:
			fmt.Fprintf(w, "%s  oneof %s {\n", indent, oneof.Name())
			for j := range oneof.Fields().Len() {
				describeField(w, indent+"    ", oneof.Fields().Get(j))
			}
			fmt.Fprintf(w, "%s  }\n", indent)
		}
	}
	fmt.Fprintf(w, "%s}\n", indent)
}

func describeField(w *strings.Builder, indent string, field protoreflect.FieldDescriptor) {
	fmt.Fprintf(w, "%s%s%s%s %s = %d;\n", indent,
		keyword(field.IsList(), "repeated"), keyword(field.HasOptionalKeyword(), "optional"),
		fieldType(field), field.Name(), field.Number())
}

func fieldType(field protoreflect.FieldDescriptor) string {
	switch {
	case field.IsMap():
		return fmt.Sprintf("map<%s, %s>", fieldType(field.MapKey()), fieldType(field.MapValue()))
	case field.Message() != nil:
		return typeName(field.Message(), field)
	case field.Enum() != nil:
		return typeName(field.Enum(), field)
	default:
		return field.Kind().String()
	}
}

// typeName leaves out the package of a type where it is that of the user.
func typeName(of, user protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(of.FullName()), string(user.ParentFile().Package())+".")
}

// keyword is a word of the declaration with its space, or nothing.
func keyword(present bool, word string) string {
	if !present {
		return ""
	}
	return word + " "
}
