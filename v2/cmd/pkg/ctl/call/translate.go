package call

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
)

// formerMethods maps methods of the newest versions to their names in older ones.
var formerMethods = map[string][]string{
	"GetDiskStats":              {"DiskStats"},
	"SetDiskState":              {"SetAttachState"},
	"GetDiskState":              {"GetAttachState"},
	"UnmountVolume":             {"DismountVolume"},
	"GetVolumeStats":            {"VolumeStats"},
	"GetDiskNumberFromVolumeID": {"GetVolumeDiskNumber"},
	"GetVolumeIDFromTargetPath": {"GetVolumeIDFromMount"},
	"CreateSymlink":             {"LinkPath"},
	"IsSymlink":                 {"IsMountPoint"},
}

// formerFields maps fields of the newest versions to their names in older ones. It applies to
// all messages, because no message has two of the names.
var formerFields = map[protoreflect.Name][]protoreflect.Name{
	"disk_number": {"diskID", "disk_id", "diskNumber"},
	"is_online":   {"isOnline"},
	"is_symlink":  {"is_mount_point"},
	"size_bytes":  {"size"},
	"target_path": {"path", "mount"},
	"total_bytes": {"diskSize", "volumeSize"},
	"used_bytes":  {"volumeUsedSize"},
}

// formerKeys are the map keys of disk ids in disk/v1beta1 and v1beta2.
var formerKeys = map[protoreflect.Name]string{"page83": "page83", "serial_number": "serialNumber"}

// field finds a field of the newest version in a message of another version.
func field(message protoreflect.MessageDescriptor, name protoreflect.Name) protoreflect.FieldDescriptor {
	for _, known := range append([]protoreflect.Name{name}, formerFields[name]...) {
		if f := message.Fields().ByName(known); f != nil {
			return f
		}
	}
	return nil
}

// toOlder fills the request of an older version. A field that is set but missing there is an
// error, because dropping it would change the request.
func toOlder(name endpoint.Name, from, to protoreflect.Message) error {
	fields := from.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		older := field(to.Descriptor(), f.Name())
		// A number 0 counts as not set, but an older text field needs it: disk "0".
		if !from.Has(f) && (older == nil || older.Kind() == f.Kind()) {
			continue
		}
		if older == nil {
			return &VersionError{text: fmt.Sprintf("%s has no %s in its %s", name, f.Name(), to.Descriptor().Name())}
		}
		if err := set(to, older, f, from.Get(f)); err != nil {
			return err
		}
	}
	// Up to filesystem/v1beta1, the original expected the path below the kubelet's plugins or
	// pods directory, depending on this field. Our server ignores it.
	if context := to.Descriptor().Fields().ByName("context"); context != nil {
		path := to.Get(to.Descriptor().Fields().ByName("path")).String()
		if strings.Contains(strings.ToLower(path), `\pods\`) {
			to.Set(context, protoreflect.ValueOfEnum(1)) // POD
		}
	}
	return nil
}

func toNewest(from, to protoreflect.Message) error {
	if f := from.Descriptor().Fields().ByName("error"); f != nil {
		if text := from.Get(f).String(); text != "" { // v1alpha1 reports errors in a field
			return status.Error(codes.Unknown, text)
		}
	}
	return fill(from, to)
}

func fill(from, to protoreflect.Message) error {
	identifiers := from.Descriptor().Fields().ByName("identifiers")
	fields := to.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if identifiers != nil {
			if id := from.Get(identifiers).Map().Get(protoreflect.ValueOfString(formerKeys[f.Name()]).MapKey()); id.IsValid() {
				to.Set(f, id)
			}
			continue
		}
		older := field(from.Descriptor(), f.Name())
		if older == nil || !from.Has(older) {
			continue
		}
		if err := set(to, f, older, from.Get(older)); err != nil {
			return err
		}
	}
	return nil
}

// set converts the value of a field to the same field of another version.
func set(message protoreflect.Message, to, from protoreflect.FieldDescriptor, value protoreflect.Value) (err error) {
	switch {
	case to.IsMap():
		target := message.Mutable(to).Map()
		value.Map().Range(func(key protoreflect.MapKey, element protoreflect.Value) bool {
			var k, v protoreflect.Value
			if k, err = scalar(to.MapKey(), key.Value()); err != nil {
				return false
			}
			if to.MapValue().Message() != nil {
				v = target.NewValue()
				err = fill(element.Message(), v.Message())
			} else {
				v, err = scalar(to.MapValue(), element)
			}
			if err == nil {
				target.Set(k.MapKey(), v)
			}
			return err == nil
		})
		return err
	case to.IsList():
		target := message.Mutable(to).List()
		for i := range value.List().Len() {
			element := value.List().Get(i)
			if to.Message() != nil {
				if err := fill(element.Message(), target.AppendMutable().Message()); err != nil {
					return err
				}
				continue
			}
			converted, err := scalar(to, element)
			if err != nil {
				return err
			}
			target.Append(converted)
		}
		return nil
	case to.Message() != nil:
		return fill(value.Message(), message.Mutable(to).Message())
	default:
		converted, err := scalar(to, value)
		if err != nil {
			return fmt.Errorf("%s: %w", from.Name(), err)
		}
		message.Set(to, converted)
		return nil
	}
}

// scalar converts a value to the kind of a field. A disk number is text or has 32 or 64 bits,
// depending on the version.
func scalar(to protoreflect.FieldDescriptor, value protoreflect.Value) (protoreflect.Value, error) {
	switch to.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(value.String()), nil // numbers in decimal
	case protoreflect.Uint32Kind:
		number, err := strconv.ParseUint(value.String(), 10, 32)
		if err != nil {
			return protoreflect.Value{}, status.Errorf(codes.Internal, "the server returned %q, want a number", value.String())
		}
		return protoreflect.ValueOfUint32(uint32(number)), nil
	default:
		return value, nil
	}
}
