package winsim_test

import (
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const guid1, guid2 = "0c51a9e0-0000-0000-0000-100000000000", "0c51a9e0-0000-0000-0000-200000000000"

func TestLoadModel(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		want       winsim.Model
	}{
		{"nothing in it", "{}", winsim.Model{}},
		{
			name: "values of all kinds",
			yaml: `# A node.
seed: 18446744073709551615
realTime: true
storage: {sanPolicy: offline-shared, offlineAgain: 1, volumeArrival: 300ms, formatTime: 1m}
disks:
  - {size: 10GiB}
  - {number: 7, size: 1073741824, serial: ' 0000_0001. ', page83: [{text: Google  disk}], scsi: {lun: 4, busNumber: "5"}, bytes: [{offset: -512, text: LUKS}]}
volumes:
  - {id: ` + guid1 + `, letter: c}
  - id: '\\?\Volume{` + guid2 + `}\'
    extents: [{disk: 7, offset: 1MiB, size: 2MiB}]
files:
  - {path: 'C:\a file', content: "two\nlines", readOnly: true}
  - path: C:\number
    content: 42
  - {path: C:\dedup, content: x, tag: 0x80000013, tagData: 01 02}
`,
			want: winsim.Model{
				Seed: math.MaxUint64, RealTime: true,
				Storage: winsim.Storage{SANPolicy: winsim.OfflineShared, OfflineAgain: 1, VolumeArrival: 300 * time.Millisecond, FormatTime: time.Minute},
				Disks: []winsim.Disk{{Size: 10 * winsim.GiB}, {
					Number: 7, Size: winsim.GiB, Serial: " 0000_0001. ", Page83: []winsim.Identifier{{Text: "Google  disk"}},
					SCSI: &winsim.SCSI{LUN: 4, BusNumber: "5"}, Bytes: []winsim.Bytes{{Offset: -512, Text: "LUKS"}},
				}},
				Volumes: []winsim.Volume{
					{ID: guid1, Letter: "c"},
					{ID: `\\?\Volume{` + guid2 + `}\`, Extents: []winsim.Extent{{Disk: 7, Offset: winsim.MiB, Size: 2 * winsim.MiB}}},
				},
				Files: []winsim.File{
					{Path: `C:\a file`, Content: "two\nlines", ReadOnly: true},
					{Path: `C:\number`, Content: "42"},
					{Path: `C:\dedup`, Content: "x", Tag: 0x80000013, TagData: "01 02"},
				},
			},
		},
		{
			name: "JSON is YAML",
			yaml: `{"volumes": [{"id": "` + guid1 + `", "letter": "C"}], "files": [{"path": "C:\\x"}]}`,
			want: winsim.Model{
				Volumes: []winsim.Volume{{ID: guid1, Letter: "C"}},
				Files:   []winsim.File{{Path: `C:\x`}},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := winsim.LoadModel(strings.NewReader(c.yaml), "node.yaml")
			mustAll(t, err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
			newNode(t, got)
		})
	}
}

// TestModel_Keys: keys have the names of their fields.
func TestModel_Keys(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			field := of.Field(i)
			key := field.Tag.Get("yaml")
			if !strings.EqualFold(key, field.Name) {
				t.Errorf("%v.%s has the key %q", of, field.Name, key)
			}
			check(field.Type)
		}
	}
	check(reflect.TypeFor[winsim.Model]())
}

// TestLoadModel_Refuses: every error names the file, the line, the field and what is
// wrong with it.
func TestLoadModel_Refuses(t *testing.T) {
	const volumes = "volumes:\n  - {id: " + guid1 + ", letter: C}\n"
	const gptDisk = "disks:\n  - size: 1GiB\n    layout: gpt\n    partitions:\n"
	for _, c := range []struct {
		name, yaml, want string
	}{
		{"empty file", "", "node.yaml: the file is empty"},
		{"only a marker", "---\n", "node.yaml: line 2: expected a mapping with the keys seed, realTime, storage, disks, volumes, iscsi, files, firmware, services, smbServers"},
		{"not a mapping", "- a\n- b\n", "node.yaml: line 1: expected a mapping with the keys seed, "},
		{"two documents", "seed: 1\n---\nseed: 2\n", "node.yaml: line 2: the file has more than one YAML document"},
		{"syntax error", "seed: 1\nvolumes: [\n", "node.yaml: line 2: did not find expected node content"},
		{"unknown field", "seed: 1\nvolume: []\n", "node.yaml: line 2: volume: unknown field; use one of seed, realTime, storage, disks, volumes, iscsi, files"},
		{"unknown field inside", volumes + "files:\n  - path: C:\\x\n    contents: x\n", "node.yaml: line 5: files[0].contents: unknown field; use one of path, content, "},
		{"duplicate key", "seed: 1\nseed: 2\n", "node.yaml: line 2: seed: duplicate field"},
		{"number expected", "seed: many\n", `node.yaml: line 1: seed: "many" is not a uint64`},
		{"negative", "seed: -1\n", `node.yaml: line 1: seed: "-1" is not a uint64`},
		{"bool expected", "realTime: 3\n", `node.yaml: line 1: realTime: "3" is not a bool`},
		{"list expected", "volumes: C\n", "node.yaml: line 1: volumes: expected a list"},
		{"value expected", "seed: [1]\n", "node.yaml: line 1: seed: expected a single value"},
		{"no value", volumes + "files:\n  - path: C:\\x\n    content:\n", "node.yaml: line 5: files[0].content: the value is missing; add one or remove the field"},
		{"null", "seed: ~\n", "node.yaml: line 1: seed: the value is missing"},
		{"alias", "volumes:\n  - &c {id: " + guid1 + ", letter: C}\n  - *c\n", "node.yaml: line 3: volumes[1]: anchors and aliases are not supported"},
		{"alias as a key", volumes + "files: [{path: &seed 'C:\\x'}]\n*seed : 1\n", "node.yaml: line 4: a key must be a single word"},
		{"merge key", "<<: {seed: 1}\n", "node.yaml: line 1: <<: unknown field"},
		{"bad GUID", "volumes:\n  - letter: C\n    id: 1234\n", `node.yaml: line 3: volumes[0].id: "1234" is not a GUID`},
		{"no GUID", "volumes:\n  - letter: C\n", `node.yaml: line 2: volumes[0].id: "" is not a GUID`},
		{"duplicate GUID", volumes + "  - id: '{" + strings.ToUpper(guid1) + "}'\n", `node.yaml: line 3: volumes[1].id: "0c51a9e0-0000-0000-0000-100000000000" is used twice`},
		{"bad letter", "volumes:\n  - id: " + guid1 + "\n    letter: 'C:'\n", `node.yaml: line 3: volumes[0].letter: "C:" is not a drive letter`},
		{"duplicate letter", volumes + "  - id: " + guid2 + "\n    letter: c\n", `node.yaml: line 4: volumes[1].letter: "C" is used twice`},
		{"bad state", "volumes:\n  - id: " + guid1 + "\n    state: broken\n", `node.yaml: line 3: volumes[0].state: "broken" is not one of "raw", "not-ready", "gone"`},
		{"bad path", volumes + "files:\n  - path: C:\\ok\n  - path: C:/x\n", `node.yaml: line 5: files[1].path: path "C:/x" is not an absolute Windows path`},
		{"no path", volumes + "files:\n  - content: x\n", `node.yaml: line 4: files[0].path: path "" is empty`},
		{"unknown volume", volumes + "files:\n  - path: C:\\x\n    volume: " + guid2 + "\n", `node.yaml: line 5: files[0].volume: "` + guid2 + `" is not a volume of the node`},
		{"relative junction", volumes + "files:\n  - path: C:\\x\n    junction: ..\\y\n", `node.yaml: line 5: files[0].junction: path "..\y" is not an absolute Windows path`},
		{"two natures", volumes + "files:\n  - path: C:\\x\n    content: x\n    symlink: C:\\y\n", `node.yaml: line 4: files[0].path: C:\x cannot have more than one of content, emptyFile, hex, symlink, fileSymlink, junction and volume`},
		{"tag of a link", volumes + "files:\n  - path: C:\\x\n    symlink: y\n    tag: 0x80000013\n", `node.yaml: line 6: files[0].tag: a link has a fixed tag; remove tag`},
		{"data without a tag", volumes + "files:\n  - path: C:\\x\n    tagData: ff\n", `node.yaml: line 5: files[0].tagData: tag is missing`},
		{"odd data", volumes + "files:\n  - {path: C:\\x, tag: 1, tagData: fff}\n", `node.yaml: line 4: files[0].tagData: "fff" is not a string of hexadecimal bytes`},
		{"too much data", volumes + "files:\n  - {path: C:\\x, tag: 1, tagData: " + strings.Repeat("ff", 16<<10) + "}\n", `node.yaml: line 4: files[0].tagData: 16384 bytes exceed the limit of 16376`},
		{"literal path of no drive", volumes + "files:\n  - path: '\\\\?\\X:\\x.'\n", `node.yaml: line 4: files[0].path: the node has no drive X:`},
		{"unknown policy", "storage:\n  volumeArrival: 1s\n  sanPolicy: offline\n", `node.yaml: line 3: storage.sanPolicy: "offline" is not one of "online-all", "offline-shared", "offline-all"`},
		{"unknown MSR", "storage: {createDiskMSR: sometimes}\n", `node.yaml: line 1: storage.createDiskMSR: "sometimes" is not one of "never", `},
		{"unknown capacity", "storage: {capacityFollows: you}\n", `node.yaml: line 1: storage.capacityFollows: "you" is not one of "update", `},
		{"unknown automount", "storage: {automount: off}\n", `node.yaml: line 1: storage.automount: "off" is not one of "on", `},
		{"no size", "disks:\n  - bus: scsi\n", "node.yaml: line 2: disks[0].size: 0 is not a valid disk size; "},
		{"odd size", "disks:\n  - bus: scsi\n    size: 1000000000\n", "node.yaml: line 3: disks[0].size: 1000000000 is not a valid disk size; "},
		{"size of another kind", "disks:\n  - size: 10GB\n", `node.yaml: line 2: disks[0].size: "10GB" is not a size such as 10GiB`},
		{"sector size", "disks:\n  - size: 1GiB\n    sectorSize: 1024\n", "node.yaml: line 3: disks[0].sectorSize: 1024 is not 512 or 4096"},
		{"unknown bus", "disks:\n  - size: 1GiB\n    bus: tram\n", `node.yaml: line 3: disks[0].bus: "tram" is not one of "ata", "fibre", `},
		{"number twice", "disks:\n  - {size: 1GiB, number: 3}\n  - {size: 1GiB, number: 3}\n", "node.yaml: line 3: disks[1].number: 3 is used twice"},
		{"empty identifier", "disks:\n  - size: 1GiB\n    page83:\n      - association: 1\n", "node.yaml: line 4: disks[0].page83[0].text: set either text or hex"},
		{"unknown identifier type", "disks:\n  - size: 1GiB\n    page83: [{text: a, type: wwn}]\n", `node.yaml: line 3: disks[0].page83[0].type: "wwn" is not one of "vendor-specific", `},
		{"path of a disk number", "disks:\n  - {size: 1GiB, path: '\\\\.\\PhysicalDrive7'}\n", `node.yaml: line 2: disks[0].path: "\\\\.\\PhysicalDrive7" is not a device interface`},
		{"path twice", "disks:\n  - {size: 1GiB, path: '\\\\?\\scsi#a'}\n  - {size: 1GiB, path: '\\\\?\\SCSI#A'}\n", `node.yaml: line 3: disks[1].path: "\\\\?\\SCSI#A" is used twice`},
		{"unknown code set", "disks:\n  - size: 1GiB\n    page83: [{text: a, codeSet: ebcdic}]\n", `node.yaml: line 3: disks[0].page83[0].codeSet: "ebcdic" is not one of "binary", `},
		{"scsi by name", "disks:\n  - {size: 1GiB, scsi: first}\n", "node.yaml: line 2: disks[0].scsi: expected a mapping with the keys port, path, target, lun, busNumber"},
		{"online and offline", "disks:\n  - {size: 1GiB, online: true, offline: true}\n", "node.yaml: line 2: disks[0].online: an online disk cannot be offline or read-only"},
		{"hidden with a table", "disks:\n  - {size: 1GiB, hidden: true, layout: gpt}\n", "node.yaml: line 2: disks[0].hidden: a hidden disk shows no volumes"},
		{"unknown layout", "disks:\n  - {size: 1GiB, layout: apm}\n", `node.yaml: line 2: disks[0].layout: "apm" is not one of "raw", "gpt", "mbr", "superfloppy"`},
		{"partitions of a raw disk", "disks:\n  - size: 1GiB\n    partitions: [{size: 1MiB}]\n", "node.yaml: line 3: disks[0].partitions: a raw disk has no partitions; set layout"},
		{"superfloppy without volume", "disks:\n  - {size: 1GiB, layout: superfloppy}\n", "node.yaml: line 2: disks[0].partitions: a superfloppy needs exactly one partition, "},
		{"too many partitions", "disks:\n  - {size: 1GiB, layout: mbr, partitions: [{size: 1MiB}, {size: 1MiB}, {size: 1MiB}, {size: 1MiB}, {size: 1MiB}]}\n", "node.yaml: line 2: disks[0].partitions: the table has room for 4 partitions"},
		{"partition type", gptDisk + "      - type: data\n", `node.yaml: line 5: disks[0].partitions[0].type: "data" is not a GUID or one of basic, `},
		{"MBR type", "disks:\n  - {size: 1GiB, layout: mbr, partitions: [{type: basic}]}\n", `node.yaml: line 2: disks[0].partitions[0].type: "basic" is not an MBR partition type such as 0x07`},
		{"partition too large", gptDisk + "      - size: 1GiB\n", "node.yaml: line 5: disks[0].partitions[0].offset: 1073741824 bytes at offset 1048576 overlap"},
		{"no room for another", gptDisk + "      - {}\n      - {}\n", "node.yaml: line 6: disks[0].partitions[1].offset: "},
		{"overlapping partitions", gptDisk + "      - {size: 100MiB}\n      - {offset: 100MiB, size: 100MiB}\n", "node.yaml: line 6: disks[0].partitions[1].offset: 104857600 bytes at offset 104857600 overlap"},
		{"partition id", gptDisk + "      - id: 7\n", `node.yaml: line 5: disks[0].partitions[0].id: "7" is not a GUID`},
		{"volume id", gptDisk + "      - volume: {id: 7}\n", `node.yaml: line 5: disks[0].partitions[0].volume.id: "7" is not a GUID`},
		{"volume id twice", gptDisk + "      - {size: 1MiB, volume: {id: " + guid1 + "}}\n      - {size: 1MiB, volume: {id: " + guid1 + "}}\n", `node.yaml: line 6: disks[0].partitions[1].volume.id: "` + guid1 + `" is used twice`},
		{"volume id of a partition", gptDisk + "      - {size: 1MiB, volume: {id: " + guid1 + ", letter: D}}\n" + volumes, `node.yaml: line 7: volumes[0].id: "` + guid1 + `" is used twice`},
		{"letter of a partition", gptDisk + "      - {size: 1MiB, volume: {letter: C}}\n" + volumes, `node.yaml: line 7: volumes[0].letter: "C" is used twice`},
		{"place of a new disk", gptDisk + "      - {}\n    presence: away\n", `node.yaml: line 6: disks[0].presence: "away" is only in a description`},
		{"exit of a new service", "services:\n  - {name: a, lastExit: 5}\n", "node.yaml: line 2: services[0].lastExit: only a description has it"},
		{"sessions of a new node", "iscsi: {sessions: [{target: iqn.x}]}\n", "node.yaml: line 1: iscsi.sessions: only a description has them; for sessions from the start use logins"},
		{"hidden volume", "volumes: [{id: 0c51a9e0-0000-0000-0000-100000000000, hidden: true}]\n", "node.yaml: line 1: volumes[0].hidden: only a description has it"},
		{"size of a partition's volume", gptDisk + "      - volume: {size: 1MiB}\n", "node.yaml: line 5: disks[0].partitions[0].volume.size: the volume of a partition cannot have size, extents or cdrom"},
		{"unknown file system", gptDisk + "      - volume:\n          fileSystem: ext4\n", `node.yaml: line 6: disks[0].partitions[0].volume.fileSystem: "ext4" is not one of "ntfs", `},
		{"files without file system", gptDisk + "      - volume: {fileSystem: raw, files: [{path: x}]}\n", "node.yaml: line 5: disks[0].partitions[0].volume.files: the volume has no file system"},
		{"bad file", gptDisk + "      - volume:\n          files:\n            - path: C:\\x\n", "node.yaml: line 7: disks[0].partitions[0].volume.files[0].path: path "},
		{"file twice", gptDisk + "      - volume:\n          files:\n            - {path: x, content: y}\n            - path: X\n", "node.yaml: line 8: disks[0].partitions[0].volume.files[1].path: X already exists"},
		{"file below a file", gptDisk + "      - volume:\n          files:\n            - {path: x, content: y}\n            - path: x\\y\n", `node.yaml: line 8: disks[0].partitions[0].volume.files[1].path: a parent of x\y is not a directory`},
		{"bytes beyond the end", "disks:\n  - size: 1GiB\n    bytes: [{offset: -1, text: ab}]\n", "node.yaml: line 3: disks[0].bytes[0].offset: 2 bytes at offset -1 do not fit"},
		{"no bytes", "disks:\n  - size: 1GiB\n    bytes: [{offset: 1}]\n", "node.yaml: line 3: disks[0].bytes[0].text: set either text or hex"},
		{"extent of no disk", "volumes:\n  - id: " + guid1 + "\n    extents: [{disk: 1, size: 1MiB}]\n", "node.yaml: line 3: volumes[0].extents[0].disk: there is no disk 1"},
		{"extent beyond the end", "disks: [{size: 1GiB}]\nvolumes:\n  - id: " + guid1 + "\n    extents: [{offset: 1GiB, size: 1MiB}]\n", "node.yaml: line 4: volumes[0].extents[0].offset: 1MiB at offset 1GiB do not fit"},
		{"extent over a volume", gptDisk + "      - {size: 1MiB, volume: {}}\nvolumes:\n  - id: " + guid1 + "\n    extents: [{offset: 1MiB, size: 1MiB}]\n", "node.yaml: line 8: volumes[0].extents[0].offset: another volume starts at this offset"},
		{"size and extents", "disks: [{size: 1GiB}]\nvolumes:\n  - {id: " + guid1 + ", size: 1MiB, extents: [{size: 1MiB}]}\n", "node.yaml: line 3: volumes[0].size: remove size; the extents determine it"},
		{"volume size", "volumes:\n  - {id: " + guid1 + ", size: 1}\n", "node.yaml: line 2: volumes[0].size: 1 is not a valid volume size; "},
		{"used", "volumes:\n  - {id: " + guid1 + ", used: -1}\n", "node.yaml: line 2: volumes[0].used: must not be negative"},
		{"CD-ROM with extents", "disks: [{size: 1GiB}]\nvolumes:\n  - {id: " + guid1 + ", cdrom: true, extents: [{size: 1MiB}]}\n", "node.yaml: line 3: volumes[0].cdrom: a CD-ROM has no extents"},
		{"service without a name", "services:\n  - {name: a}\n  - {displayName: b}\n", `node.yaml: line 3: services[1].name: "" is not the name of a service: it is empty`},
		{"service with a bad name", "services:\n  - name: 'a\\b'\n", `node.yaml: line 2: services[0].name: "a\\b" is not the name of a service: it contains a slash`},
		{"service twice", "services:\n  - name: a\n  - name: A\n", `node.yaml: line 3: services[1].name: "A" is used twice`},
		{"service that depends on nothing", "services:\n  - name: a\n    dependsOn: [b]\n", `node.yaml: line 3: services[0].dependsOn: "b" is not a service of the node`},
		{"services in a circle", "services:\n  - {name: x, dependsOn: [a]}\n  - name: a\n    dependsOn: [b]\n  - {name: b, dependsOn: [c]}\n  - {name: c, dependsOn: [a]}\n", `node.yaml: line 4: services[1].dependsOn: a depends on itself`},
		{"start type", "services:\n  - name: a\n    startType: auto\n", `node.yaml: line 3: services[0].startType: "auto" is not one of `},
		{"state of a service", "services:\n  - name: a\n    state: started\n", `node.yaml: line 3: services[0].state: "started" is not one of `},
		{"exit code of its own without 1066", "services:\n  - {name: a, exitCode: 5, specificExitCode: 7}\n", `node.yaml: line 2: services[0].specificExitCode: needs exitCode 1066`},
		{"service runs without what it needs", "services:\n  - {name: a, state: stopped}\n  - {name: b, startType: automatic, dependsOn: [a]}\n", `node.yaml: line 3: services[1].state: the service is running, but its dependency a is stopped`},
		{"firmware table", "firmware:\n  table: xyz\n", `node.yaml: line 2: firmware.table: "xyz" is not a string of hexadecimal bytes`},
		{"firmware table and serial number", "firmware:\n  serial: x\n  table: 00\n", `node.yaml: line 3: firmware.table: set either table or serial`},
		{"serial number in Greek", "firmware: {serial: α}\n", `node.yaml: line 1: firmware.serial: "α" has characters that firmware cannot show`},
		// A value that is spelt like a key must not be taken for it.
		{"value like a key", volumes + "files:\n  - symlink: volume\n    path: C:\\x\n    readOnly: false\n    volume: " + guid1 + "\n", `node.yaml: line 5: files[0].path: C:\x cannot have more than one of`},
	} {
		t.Run(c.name, func(t *testing.T) {
			model, err := winsim.LoadModel(strings.NewReader(c.yaml), "node.yaml")
			var problem *winsim.ModelError
			if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v and the error\n%v, want\n%s", model, err, c.want)
			}
		})
	}
}

func TestLoadModel_ReadError(t *testing.T) {
	_, err := winsim.LoadModel(iotest.ErrReader(io.ErrClosedPipe), "node.yaml")
	if !errors.Is(err, io.ErrClosedPipe) || !strings.HasPrefix(err.Error(), "node.yaml: ") {
		t.Errorf("%v, want the reader's error with the file's name", err)
	}
}

// TestNew_Refuses: models that are well formed but cannot be built.
func TestNew_Refuses(t *testing.T) {
	volumes := []winsim.Volume{{ID: guid1, Letter: "C"}, {ID: guid2, Letter: "D", State: winsim.NotReady}}
	for _, c := range []struct {
		name  string
		model winsim.Model
		want  string
	}{
		{"validated as YAML is", winsim.Model{Volumes: []winsim.Volume{{}}}, `volumes[0].id: "" is not a GUID`},
		{"no such drive", winsim.Model{Volumes: volumes, Files: []winsim.File{{Path: `X:\x`}}}, `files[0].path: the node has no drive X:`},
		{"no drives at all", winsim.Model{Files: []winsim.File{{Path: `C:\x`}}}, `files[0].path: the node has no drive C:`},
		{"twice the same file", winsim.Model{Volumes: volumes, Files: []winsim.File{{Path: `C:\x`, EmptyFile: true}, {Path: `C:\X`, Content: "x"}}}, `files[1].path: create C:\X: it already exists`},
		{"file in the way", winsim.Model{Volumes: volumes, Files: []winsim.File{{Path: `C:\x`, EmptyFile: true}, {Path: `C:\x\y`}}}, `files[1].path: create C:\x\y: `},
		{"link to nowhere in the way", winsim.Model{Volumes: volumes, Files: []winsim.File{{Path: `C:\x`, Symlink: "nowhere"}, {Path: `C:\x\y`}}}, `files[1].path: create C:\x\y: `},
		{"drive that is not ready", winsim.Model{Volumes: volumes, Files: []winsim.File{{Path: `D:\x`}}}, `files[0].path: create D:\x: the device is not ready`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := winsim.New(c.model)
			var problem *winsim.ModelError
			if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestNew_MakesWhatTheModelSays(t *testing.T) {
	node := newNode(t, winsim.Model{
		Volumes: []winsim.Volume{{ID: guid1, Letter: "c"}, {ID: guid2}},
		Files: []winsim.File{
			{Path: `C:\a\b`},
			{Path: `C:\a`, ReadOnly: true}, // an attribute for what is there already
			{Path: `C:\a\empty`, EmptyFile: true},
			{Path: `C:\a\full`, Content: "x", ReadOnly: true},
			{Path: `C:\link`, Symlink: `a`},
			{Path: `C:\junction`, Junction: `C:\a`},
			{Path: `C:\mount`, Volume: strings.ToUpper(guid2)},
			{Path: `C:\mount\on the volume`, EmptyFile: true},
			{Path: `C:\link\through the link`},
		},
	})
	const want = `C:\
C:\a read-only
C:\a\b
C:\a\empty ""
C:\a\full "x" read-only
C:\a\through the link
C:\junction => C:\a
C:\link -> a
C:\mount => \\?\Volume{0c51a9e0-0000-0000-0000-200000000000}\
`
	if diff := cmp.Diff(want, node.Tree(`C:\`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !node.Exists(`C:\mount\on the volume`) {
		t.Error("the file on the mounted volume is missing")
	}
}

func TestPresets(t *testing.T) {
	names := winsim.Presets()
	if len(names) == 0 {
		t.Error("there are no presets")
	}
	for _, name := range names {
		model, ok := winsim.Preset(name)
		if !ok {
			t.Errorf("preset %q is listed but not there", name)
		}
		node := newNode(t, model)
		if tree := node.Tree(`C:\var\lib\kubelet`); !strings.Contains(tree, "pods") {
			t.Errorf("preset %q has no kubelet directories:\n%s", name, tree)
		}
		// A caller's changes are its own.
		if len(model.Files) > 0 {
			model.Files[0].Path = "changed"
		}
		if again, _ := winsim.Preset(name); cmp.Equal(model, again) {
			t.Errorf("preset %q changed with the caller's copy", name)
		}
	}
	if model, ok := winsim.Preset("no such preset"); ok {
		t.Errorf("a preset of no name: %+v", model)
	}
}

func TestLoadFaults(t *testing.T) {
	const yaml = `
faults:
  - {call: CreateDirectory, object: 'C:\var\*', nth: 2, times: 1, error: 5}
  - call: FileInfo
    chance: 0.25
    delay: 1m30s
`
	want := []winsim.Fault{
		{Call: "CreateDirectory", Object: `C:\var\*`, Nth: 2, Times: 1, Error: 5},
		{Call: "FileInfo", Chance: 0.25, Delay: 90 * time.Second},
	}
	got, err := winsim.LoadFaults(strings.NewReader(yaml), "faults.yaml")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := winsim.LoadFaults(strings.NewReader("faults: []"), "faults.yaml"); err != nil || len(got) != 0 {
		t.Errorf("an empty list: %v, %v", got, err)
	}
}

func TestLoadFaults_Refuses(t *testing.T) {
	for _, c := range []struct {
		name, yaml, want string
	}{
		{"a bare list", "- {call: FileInfo, error: 5}\n", "faults.yaml: line 1: expected a mapping with the keys faults"},
		{"unknown field", "faults:\n  - call: FileInfo\n    code: 5\n", "faults.yaml: line 3: faults[0].code: unknown field; use one of call, object, nth, times, chance, delay, late, error"},
		{"unknown call", "faults:\n  - {error: 5}\n  - error: 5\n    call: Frmt\n", `faults.yaml: line 4: faults[1].call: unknown call "Frmt"; use one of ActiveDependents, `},
		{"delay without unit", "faults:\n  - {delay: 5}\n", `faults.yaml: line 2: faults[0].delay: "5" is not a duration such as 50ms`},
		{"code too large", "faults:\n  - {error: 4294967296}\n", `faults.yaml: line 2: faults[0].error: "4294967296" is not a uint32`},
		{"does nothing", "faults:\n  - {call: FileInfo, error: 5}\n  - {call: FileInfo}\n", "faults.yaml: line 3: faults[1].error: the fault does nothing; set error, delay or late"},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults, err := winsim.LoadFaults(strings.NewReader(c.yaml), "faults.yaml")
			var problem *winsim.ModelError
			if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v and the error\n%v, want\n%s", faults, err, c.want)
			}
		})
	}
}

// FuzzLoadModel: whatever is in the file, there is a node or a *ModelError.
func FuzzLoadModel(f *testing.F) {
	f.Add("volumes:\n  - {id: " + guid1 + ", letter: C}\nfiles:\n  - path: C:\\x\\y\n  - {path: C:\\l, symlink: ..\\x}\n  - {path: C:\\m, volume: " + guid1 + "}\n  - path: C:\\m\\l\\z\n")
	f.Add("disks:\n  - {size: 1GiB, layout: gpt, sectorSize: 4096, partitions: [{type: msr}, {volume: {letter: C, files: [{path: x\\y}]}}], bytes: [{offset: -1, text: x}]}\n  - {size: 2MiB, layout: mbr, partitions: [{offset: 1MiB, type: 0x0c}]}\n  - {size: 1MiB, layout: superfloppy, partitions: [{volume: {fileSystem: fat32}}]}\nvolumes: [{id: " + guid2 + ", extents: [{offset: 20MiB, size: 1MiB}]}]\nfiles: [{path: C:\\z}]\n")
	f.Add("storage: {automount: nameless, sanPolicy: offline-all}\ndisks: [{size: 1GiB, layout: gpt, partitions: [{volume: {letter: C}}]}]")
	f.Add("services: [{name: a, dependsOn: [b, B], startType: automatic}, {name: b, state: start-pending, startTime: 1s, exitCode: 1066, specificExitCode: 1}]\nfirmware: {table: 00030300 ffffffff 0108, wmiSerial: x}")
	f.Add("seed: &a 1\nfiles: [*a]")
	f.Add("? [a]\n: b\n---\n{")
	f.Add("<<: !!binary x\n!!set {a}: \"\\uD800\"")
	f.Fuzz(func(t *testing.T, text string) {
		model, err := winsim.LoadModel(strings.NewReader(text), "node.yaml")
		var problem *winsim.ModelError
		if err != nil {
			if !errors.As(err, &problem) || problem.File != "node.yaml" {
				t.Fatalf("%v is not a *ModelError with the file's name", err)
			}
			return
		}
		node, err := winsim.New(model)
		if err != nil {
			if !errors.As(err, &problem) || problem.Field == "" {
				t.Fatalf("%v is not a *ModelError with a field", err)
			}
			return
		}
		for _, file := range model.Files {
			if !node.Exists(file.Path) {
				t.Fatalf("%s is missing", file.Path)
			}
			_, _ = node.TargetInfo(t.Context(), win.Anywhere(file.Path))
		}
	})
}

// FuzzLoadFaults: whatever is in the file, there are faults that can be injected or a
// *ModelError.
func FuzzLoadFaults(f *testing.F) {
	f.Add("faults:\n  - {call: CreateDirectory, object: 'C:\\var\\*', nth: 2, times: 1, error: 5}\n  - {chance: 0.01, delay: 50ms}\n")
	f.Add("faults: [{error: 0x7fffffff, chance: .inf}]")
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := winsim.LoadFaults(strings.NewReader(text), "faults.yaml")
		if problem := (*winsim.ModelError)(nil); err != nil && !errors.As(err, &problem) {
			t.Fatalf("%v is not a *ModelError", err)
		}
		node, err := winsim.New(winsim.Default())
		mustAll(t, err)
		for _, fault := range faults {
			if _, err := node.Inject(fault); err != nil {
				t.Fatalf("%+v was loaded but not injected: %v", fault, err)
			}
		}
	})
}
