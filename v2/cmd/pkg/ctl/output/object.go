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

// Message returns all fields of a message as scripts get them, by their names in JSON. A field that can be missing, and
// is, is null. A list is never null. Large numbers stay numbers.
func Message(m proto.Message) Object {
	message := m.ProtoReflect()
	fields := message.Descriptor().Fields()
	o := make(Object, fields.Len())
	for i := range o {
		o[i] = Member{nameOf(fields.Get(i)), value(message, fields.Get(i))}
	}
	return o
}

// nameOf is the name of a field. Scripts know volumeID.
func nameOf(field protoreflect.FieldDescriptor) string {
	if name, ok := strings.CutSuffix(field.JSONName(), "Id"); ok {
		return name + "ID"
	}
	return field.JSONName()
}

// Set replaces the value of a member.
func (o Object) Set(name string, value any) {
	for i := range o {
		if o[i].Name == name {
			o[i].Value = value
		}
	}
}

func value(message protoreflect.Message, field protoreflect.FieldDescriptor) any {
	single := func(v protoreflect.Value) any {
		if field.Message() != nil {
			return Message(v.Message().Interface())
		}
		return v.Interface()
	}
	switch {
	case field.IsMap():
		return nil // of answers that commands show in another form
	case field.IsList():
		list, all := message.Get(field).List(), []any{}
		for i := range list.Len() {
			all = append(all, single(list.Get(i)))
		}
		return all
	case field.HasPresence() && !message.Has(field):
		return nil
	default:
		return single(message.Get(field))
	}
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
