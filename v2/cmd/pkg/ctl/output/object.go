package output

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Object is a JSON object whose members keep their order.
type Object []Member

// Member is a name and its value.
type Member struct {
	Name  string
	Value any
}

// Fields returns fields of a message as scripts get them. Names are separated by spaces; name=field has another name
// than its field. A field that can be missing, and is, is null. A list is never null.
func Fields(m proto.Message, names string) Object {
	message := m.ProtoReflect()
	var o Object
	for name := range strings.FieldsSeq(names) {
		name, field, renamed := strings.Cut(name, "=")
		if !renamed {
			field = name
		}
		o = append(o, Member{name, value(message, field)})
	}
	return o
}

// Set replaces the value of a member.
func (o Object) Set(name string, value any) {
	for i := range o {
		if o[i].Name == name {
			o[i].Value = value
		}
	}
}

// value returns a field by its name in JSON, whose case does not matter: scripts know volumeID.
func value(message protoreflect.Message, name string) any {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case !strings.EqualFold(field.JSONName(), name):
		case field.IsList():
			list, all := message.Get(field).List(), []any{}
			for i := range list.Len() {
				all = append(all, list.Get(i).Interface())
			}
			return all
		case field.HasPresence() && !message.Has(field):
			return nil
		default:
			return message.Get(field).Interface()
		}
	}
	panic(string(message.Descriptor().Name()) + " has no field " + name)
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, member := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encoder.Encode(member.Name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encoder.Encode(member.Value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
