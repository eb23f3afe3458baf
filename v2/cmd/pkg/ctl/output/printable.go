package output

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// Printable escapes control characters and line breaks. Serial numbers come from a device or
// an iSCSI target, which could otherwise control the terminal.
func Printable(text string) string {
	return printable.Text(text)
}

// PrintableCopy returns a deep copy of a value with all strings printable.
func PrintableCopy[T any](value T) T { return CopyWith(value, Printable) }

// CopyWith returns a deep copy of a value with all strings changed.
func CopyWith[T any](value T, change func(string) string) T {
	changed := reflect.New(reflect.TypeFor[T]()).Elem()
	copyWith(change, changed, reflect.ValueOf(value))
	return changed.Interface().(T)
}

func copyWith(change func(string) string, to, from reflect.Value) {
	if from.Type() == reflect.TypeFor[time.Time]() {
		to.Set(from)
		return
	}
	switch from.Kind() {
	case reflect.String:
		to.SetString(change(from.String()))
	case reflect.Struct:
		for i := range from.NumField() {
			copyWith(change, to.Field(i), from.Field(i))
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		}
		for i := range from.Len() {
			copyWith(change, to.Index(i), from.Index(i))
		}
	case reflect.Pointer:
		if message, ok := reflect.TypeAssert[proto.Message](from); ok && !from.IsNil() {
			copied := proto.Clone(message)
			changeStrings(change, copied.ProtoReflect())
			to.Set(reflect.ValueOf(copied))
		} else if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyWith(change, to.Elem(), from.Elem())
		}
	default:
		to.Set(from)
	}
}

func changeStrings(change func(string) string, message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			for i := range value.List().Len() {
				changeStrings(change, value.List().Get(i).Message())
			}
		case field.IsList() && field.Kind() == protoreflect.StringKind:
			for i := range value.List().Len() {
				value.List().Set(i, protoreflect.ValueOfString(change(value.List().Get(i).String())))
			}
		case field.IsMap():
			panic("no message of ours has a map: " + string(field.FullName())) // its texts would stay
		case field.Kind() == protoreflect.MessageKind:
			changeStrings(change, message.Mutable(field).Message())
		case field.Kind() == protoreflect.StringKind:
			message.Set(field, protoreflect.ValueOfString(change(value.String())))
		}
		return true
	})
}

// KeepColours escapes control characters except line breaks and our colours.
func KeepColours(text string) string {
	return printable.Text(text, func(at int, r rune) bool {
		return r == '\n' || r == escape && slices.ContainsFunc(append(escapes[Faint:], reset), func(ours string) bool {
			return strings.HasPrefix(text[at:], ours)
		})
	})
}
