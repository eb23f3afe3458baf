package serve_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestDiskLists_Unanswered: virtual machines answer optional properties with 31. Drivers of all
// versions still see each disk, with the keys that it reports.
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

// TestDiskLists_AzureNVMe does what azuredisk-csi-driver does in its versions for disk v1 and
// v1beta2: it takes the first disk with the LUN that the cloud has attached. It must never get the
// disk of Windows or the local one.
func TestDiskLists_AzureNVMe(t *testing.T) {
	model := winsim.AzureNVMe()
	for lun := len(model.Disks) - 2; lun < 12; lun++ { // two disks are not data disks
		data := model.Disks[1]
		data.Path = strings.Replace(data.Path, "000001", fmt.Sprintf("%06x", lun+1), 1)
		model.Disks = append(model.Disks, data)
	}
	for _, d := range diskVersions {
		t.Run(d.name, func(t *testing.T) {
			node, err := winsim.New(model)
			must(t, err)
			client := dialRemote(t, d.newClient, run(t, node, "disk/"+d.name), "disk", d.name)
			out, err := client.call(t.Context(), "ListDiskLocations", nil)
			must(t, err)
			found := map[string]string{}
			out.get(t, "disk_locations").(protoreflect.Map).Range(func(number protoreflect.MapKey, disk protoreflect.Value) bool {
				if lun := texts(disk.Message())["LUNID"]; lun != "" {
					found[lun] += number.String()
				}
				return true
			})
			want := map[string]string{"0": "1", "1": "2"}
			for lun := 2; lun < 12; lun++ {
				want[strconv.Itoa(lun)] = strconv.Itoa(lun + 2) // disk 3 is local
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("disks by LUN (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDiskLists_GCENVMe does what gcp-compute-persistent-disk-csi-driver#2114 does: it looks for a
// serial number of which the first 16 digits are the number that the metadata server reports.
func TestDiskLists_GCENVMe(t *testing.T) {
	const namespaceIdentifier = 0x10CC9636B6E3CE3B
	for _, d := range diskVersions {
		node, err := winsim.New(winsim.GCENVMe())
		must(t, err)
		client := dialRemote(t, d.newClient, run(t, node, "disk/"+d.name), "disk", d.name)
		if !client.has("ListDiskIDs") {
			continue
		}
		out, err := client.call(t.Context(), "ListDiskIDs", nil)
		must(t, err)
		var found []string
		out.get(t, "diskIDs").(protoreflect.Map).Range(func(number protoreflect.MapKey, disk protoreflect.Value) bool {
			values := texts(disk.Message())
			digits := strings.ReplaceAll(strings.TrimSuffix(values["serialNumber"]+values["serial_number"], "."), "_", "")
			if got, err := strconv.ParseUint(digits[:16], 16, 64); len(digits) == 32 && err == nil && got == namespaceIdentifier {
				found = append(found, number.String())
			}
			return true
		})
		if len(found) != 1 || found[0] != "1" {
			t.Errorf("%s: found %q, want disk 1", d.name, found)
		}
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
