package unmodified

import "strings"

// content is what is on a disk of the node: fields of a model.
type content string

const (
	// A blank disk.
	blank content = `
    size: 32GiB`

	// The disk of a Linux pod: a table with a partition that Windows cannot show.
	linuxPartition content = `
    size: 32GiB
    layout: gpt
    partitions: [{type: linux, bytes: [{offset: 1080, hex: 53ef}]}]`

	// The same without a table.
	linuxDisk content = `
    size: 32GiB
    bytes: [{offset: 1080, hex: 53ef}]`

	// A volume with data, as it arrives from another node.
	moved content = `
    size: 32GiB
    offline: true
    readOnly: true
    layout: gpt
    partitions:
      - type: msr
      - volume: {id: 5ba7e000-0000-4000-8000-000000000001, files: [{path: precious.txt, content: precious}]}`
)

const movedVolume = "5ba7e000-0000-4000-8000-000000000001"

// delays is how long the machine takes for things: fields of a model.
type delays string

const (
	idle delays = "{volumeArrival: 150ms, serviceDelay: 300ms, formatTime: 800ms}"

	// Longer than the 10 s for which drivers have seen an empty list of volumes.
	late delays = "{volumeArrival: 15s, serviceDelay: 300ms, formatTime: 800ms}"
)

// model describes the node of a driver: a system disk, and disks with these contents.
func (d *driver) model(pace delays, contents ...content) string {
	var b strings.Builder
	b.WriteString("storage: " + string(pace) + `
disks:
  - {size: 64GiB, system: true, layout: gpt, partitions: [{type: efi, size: 100MiB, volume: {fileSystem: fat32}}, {type: msr, size: 16MiB}, {volume: {letter: C, used: 20GiB}}]}
`)
	for unit, content := range contents {
		b.WriteString("  - number: " + string(rune('1'+unit)) + string(content) + d.disk(unit) + "\n")
	}
	b.WriteString(`files:
  - path: C:\var\lib\kubelet\pods
  - path: C:\var\lib\kubelet\plugins\kubernetes.io\csi
smbServers:
  - name: srv.example
    shares: [{name: share, files: [{path: precious.txt, content: precious}]}]
    accounts: [{user: csi, password: csi-Pa55}]
`)
	return b.String()
}
