package serve_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestDiskLists_Unanswered: virtual machines answer optional properties with 31. Drivers of all
// versions still see each disk, with the keys that it tells.
func TestDiskLists_Unanswered(t *testing.T) {
	for _, d := range diskVersions {
		t.Run(d.name, func(t *testing.T) {
			node := newNode(t)
			for _, call := range []string{"DeviceIdentifiers", "DeviceLocation"} {
				if _, err := node.Inject(winsim.Fault{Call: call, Error: 31}); err != nil {
					t.Fatal(err)
				}
			}
			client := dialRemote(t, d.newClient, run(t, node, "disk/"+d.name), "disk", d.name)
			for method, field := range map[string]string{"ListDiskLocations": "disk_locations", "ListDiskIDs": "diskIDs"} {
				if !client.has(method) {
					continue
				}
				out, err := client.call(t.Context(), method, nil)
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				disks := out.get(t, field).(protoreflect.Map)
				if disks.Len() != 4 {
					t.Errorf("%s lists %d disks, want 4", method, disks.Len())
				}
				disks.Range(func(number protoreflect.MapKey, disk protoreflect.Value) bool {
					values := texts(disk.Message())
					if method == "ListDiskIDs" && values["serialNumber"] == "" && values["serial_number"] == "" {
						t.Errorf("disk %v lost its serial number: %v", number, values)
					}
					if method == "ListDiskLocations" && values["LUNID"] == "" {
						t.Errorf("disk %v lost its LUN: %v", number, values)
					}
					return true
				})
			}
		})
	}
}

// texts are the values of a disk in a list, by the names of its fields, or of its identifiers in
// the versions that have a map of them.
func texts(disk protoreflect.Message) map[string]string {
	values := map[string]string{}
	disk.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if !field.IsMap() {
			values[string(field.Name())] = value.String()
			return true
		}
		value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			values[fmt.Sprint(key)] = value.String()
			return true
		})
		return true
	})
	return values
}
