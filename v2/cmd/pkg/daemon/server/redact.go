package server

import (
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
)

// secretFields are the fields of requests that never appear in a log. A test walks all
// descriptors and fails if a field that looks secret is missing here.
var secretFields = map[protoreflect.Name]bool{
	"password":         true,
	"chap_secret":      true,
	"MutualChapSecret": true,
	"value":            true, // of google.protobuf.StringValue: a change of the emulated node, with its passwords
}

// maxLoggedText limits how much of one field gets into the log.
const maxLoggedText = 512

// loggable returns the fields of a request as keys and values for a log line, without
// its secrets.
func loggable(request any) []any {
	message, ok := request.(proto.Message)
	if !ok {
		return nil
	}
	return appendFields(nil, "", message.ProtoReflect())
}

// appendFields appends the fields that are set, in the order of their declaration. The fields of a
// nested message get its name as prefix. Requests have neither lists nor maps; of those only the
// length would be logged.
func appendFields(values []any, prefix string, m protoreflect.Message) []any {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		key, value := prefix+string(field.Name()), m.Get(field)
		switch {
		case secretFields[field.Name()]:
			values = append(values, key, "***")
		case field.IsList():
			values = append(values, key, value.List().Len())
		case field.IsMap():
			values = append(values, key, value.Map().Len())
		case field.Kind() == protoreflect.MessageKind:
			values = appendFields(values, key+".", value.Message())
		case field.Kind() == protoreflect.StringKind:
			values = append(values, key, oneLine(value.String()))
		default:
			values = append(values, key, value.Interface())
		}
	}
	return values
}

// oneLine makes a caller's text safe for a log: it limits the length and replaces characters that
// start a new line or control a terminal.
func oneLine(text string) string {
	if len(text) > maxLoggedText {
		text = strings.ToValidUTF8(text[:maxLoggedText], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// describe returns the name and the user of a process as the log and the metrics can have them. A process chooses its
// name.
func describe(pid int) (name, user string) {
	const longest = 64
	name, user = pipe.Describe(pid)
	runes := []rune(oneLine(strings.ToValidUTF8(name, string(unicode.ReplacementChar))))
	return string(runes[:min(longest, len(runes))]), user
}
