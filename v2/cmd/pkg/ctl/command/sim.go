package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

func (a *app) sim() *cobra.Command {
	c := a.group(page{
		use:   "sim",
		short: "Change the emulated node of csi-proxy-sim while it runs",
		long: `Change the emulated node of csi-proxy-sim while it runs: its disks, the SMB servers in its
network, and the machine. These commands act as the storage backend, a server's
administrator, or a power button do. Windows is not notified, as on a real node.

They need 'csi-proxy-sim -control default'. The daemon has no such service.`,
		example: `  csi-proxy-sim -control default &
  csi-proxyctl sim attach 10GiB --serial disk-7
  csi-proxyctl sim grow 4 20GiB
  csi-proxyctl disk rescan`,
	},
		a.leaf(page{
			use:   "show",
			short: "Show the emulated node",
			long: `Show the emulated node (Describe) in the words of its model, as it is outside Windows: sizes on the
backend, failures, servers that are down, and hashes of what is on the disks.`,
			example: "  csi-proxyctl sim show\n  csi-proxyctl sim show -o json",
		}, 0, func(ctx context.Context, s *session, _ []string) error {
			described, err := s.client.Emulated(ctx)
			if err != nil {
				return err
			}
			if !s.Format.ForScripts() {
				s.Format = output.YAML
			}
			return s.Value(json.RawMessage(described), nil)
		}),
		a.simAttach(), a.simClone(),
		a.simChange(page{
			use:     "detach DISK",
			short:   "Detach a disk without notifying Windows",
			long:    "Detach a disk without notifying Windows. 'sim reattach' brings it back with its content. The system disk cannot be detached.",
			example: "  csi-proxyctl sim detach 4",
		}, "detach: [$1]", "disk {1}", "detached"),
		a.onDisk(page{
			use:     "reattach DISK",
			short:   "Attach a detached disk again, with its content",
			long:    "Attach a detached disk again, with its content. DISK is the number that it had; it can get another one.",
			example: "  csi-proxyctl sim reattach 4",
		}, func(ctx context.Context, s *session, disk uint32) error {
			return attach(ctx, s, map[string]any{"reattach": []uint32{disk}})
		}),
		a.simChange(page{
			use:     "grow DISK SIZE",
			short:   "Enlarge a disk on the backend",
			long:    "Enlarge a disk on the backend. SIZE is the new size: 20Gi, 20GiB or a number of bytes. Windows may see it only after 'disk rescan'.",
			example: "  csi-proxyctl sim grow 4 20GiB\n  csi-proxyctl disk rescan",
		}, "grow: [{disk: $1, size: $2}]", "disk {1}", "grown to {2}"),
		a.simChange(page{
			use:     "fail DISK",
			short:   "Make a disk fail",
			long:    "Make a disk fail. All reads and writes of the disk fail with ERROR_IO_DEVICE (1117), until 'sim heal'. Windows still knows the disk and its volumes.",
			example: "  csi-proxyctl sim fail 4",
		}, "fail: [$1]", "disk {1}", "fails"),
		a.simChange(page{
			use:     "hang DISK",
			short:   "Make a disk hang",
			long:    "Make a disk hang. All reads and writes of the disk, its volumes and their files wait, until 'sim heal'. Windows still knows the disk and its volumes.",
			example: "  csi-proxyctl sim hang 4",
		}, "hang: [$1]", "disk {1}", "hangs"),
		a.simChange(page{
			use:     "heal DISK",
			short:   "End the failure or hang of a disk",
			long:    "End the failure or hang of a disk. Does nothing if the disk is healthy.",
			example: "  csi-proxyctl sim heal 4",
		}, "heal: [$1]", "disk {1}", "healthy"),
		a.simServer(), a.simShare(), a.simAccount(),
		a.simChange(page{
			use:     "end-sessions",
			short:   "End all SMB sessions of the node",
			long:    "End all SMB sessions of the node, as Windows does with idle ones. Mappings stay, and connect again at the next access.",
			example: "  csi-proxyctl sim end-sessions",
		}, "endSMBSessions: true", "SMB sessions", "ended"),
		a.simChange(page{
			use:     "mkdir PATH",
			short:   "Create a directory on a share or a drive",
			long:    "Create a directory and its missing parents on a share or a drive, as another client of the server does. The share need not be mapped. Does nothing if the directory exists.",
			example: `  csi-proxyctl sim mkdir '\\files\data\pvc-1'`,
		}, "directories: [$1]", "{1}", "created"),
		a.simChange(page{
			use:   "reboot",
			short: "Restart the emulated node",
			long: `Restart the emulated node. Running calls of clients fail. SMB mappings lose their
credentials, iSCSI sessions end unless they are persistent, and automatic services start.
Returns when all endpoints listen again.`,
			example: "  csi-proxyctl sim reboot",
		}, "reboot: true", "node", "restarted"),
		a.simChange(page{
			use:   "restart-daemon",
			short: "Kill the daemon, and start it again",
			long: `Kill the daemon in the middle of what it does, without clean-up, and start it again. The node lives on: its
disks, mappings and sessions stay, and Windows goes on with what it was asked. Running calls of
clients fail. Returns when all endpoints listen again.`,
			example: "  csi-proxyctl sim restart-daemon",
		}, "restartDaemon: true", "daemon", "restarted"),
	)
	c.PersistentFlags().StringVar(&a.control, "control", "", "address that csi-proxy-sim got with -control (default: beside the other endpoints)")
	return c
}

// simChange is a command that makes a change, in YAML. $1 is its first argument; {1} is what people see of it.
func (a *app) simChange(p page, change, object, done string) *cobra.Command {
	arguments := strings.Fields(p.use)[1:]
	return a.leaf(p, len(arguments), func(ctx context.Context, s *session, args []string) error {
		values, words, err := parseAll(arguments, args)
		if err != nil {
			return err
		}
		encoded := []string{}
		for i, value := range values {
			text, err := json.Marshal(value.Interface())
			if err != nil {
				return err
			}
			encoded = append(encoded, fmt.Sprintf("$%d", i+1), string(text))
		}
		if _, err := s.client.Change(ctx, strings.NewReplacer(encoded...).Replace(change)); err != nil {
			return err
		}
		return s.done(words.Replace(object), words.Replace(done))
	})
}

// attach makes a change that attaches a disk, and prints the disk's number.
func attach(ctx context.Context, s *session, change map[string]any) error {
	encoded, err := json.Marshal(change)
	if err != nil {
		return err
	}
	var changed struct {
		Disks []uint32 `json:"disks"`
	}
	switch answer, err := s.client.Change(ctx, string(encoded)); {
	case err != nil:
		return err
	case json.Unmarshal([]byte(answer), &changed) != nil || len(changed.Disks) != 1:
		return fmt.Errorf("csi-proxy-sim answers %q; use the csi-proxyctl of its version", answer)
	}
	object := fmt.Sprintf("disk %d", changed.Disks[0])
	return s.Value(struct {
		Object     string `json:"object"`
		Done       string `json:"done"`
		DiskNumber uint32 `json:"diskNumber"`
	}{object, "attached", changed.Disks[0]}, func() string { return object + ": attached\n" })
}

// disk is a new disk in the words of a change.
type disk map[string]any

// contents are what is on a new disk, by name. The bytes of ext4 are the magic number of its superblock.
// https://docs.kernel.org/filesystems/ext4/globals.html#super-block
var contents = map[string]func(d disk, volume map[string]any){
	"blank": func(disk, map[string]any) {},
	"ntfs": func(d disk, volume map[string]any) {
		d["layout"], d["partitions"] = "gpt", []any{map[string]any{"type": "msr", "size": "16MiB"}, map[string]any{"volume": volume}}
	},
	"mbr": func(d disk, volume map[string]any) {
		d["layout"], d["partitions"] = "mbr", []any{map[string]any{"volume": volume}}
	},
	"linux-gpt": func(d disk, _ map[string]any) {
		d["layout"], d["partitions"] = "gpt", []any{map[string]any{"type": "linux", "bytes": ext4}}
	},
	"ext4": func(d disk, _ map[string]any) { d["bytes"] = ext4 },
}

var ext4 = []any{map[string]any{"offset": 1024 + 0x38, "hex": "53ef"}}

// fields are the flags of a new disk that are fields of a disk in a change.
var fields = map[string]string{
	"number": "number", "lun": "lun", "like": "like", "serial": "serial", "bus": "bus", "offline": "offline", "read-only": "readOnly", "sector-size": "sectorSize",
}

// hardware adds the flags of a new disk that do not concern its content. The command attaches a disk as they say.
func hardware(flags *pflag.FlagSet) (attachAs func(ctx context.Context, s *session, d disk) error) {
	flags.Uint32("number", 0, "number that Windows gives the disk (default: the lowest free one)")
	flags.Uint8("lun", 0, "LUN (default: the lowest free one; NVMe disks have none)")
	flags.Uint32("like", 0, "number of a disk with the same bus, model, sector size and adapter (default: a SCSI disk on adapter 1)")
	flags.String("serial", "", "serial number")
	flags.String("bus", "", "bus: scsi, sas, nvme, ... (default: that of --like, else scsi)")
	flags.String("page83", "", "page 83 identifier as text, such as 'Google  pvc-1'")
	flags.String("page83-hex", "", "page 83 identifier in hexadecimal digits")
	flags.Bool("offline", false, "the disk arrives offline")
	flags.Bool("read-only", false, "the disk arrives read-only, as one that was moved from another node")
	return func(ctx context.Context, s *session, d disk) error {
		identifier := map[string]string{}
		flags.Visit(func(f *pflag.Flag) { // those that are given
			switch field, text := fields[f.Name], f.Value.String(); {
			case f.Name == "page83":
				identifier["text"], d["page83"] = text, []any{identifier}
			case f.Name == "page83-hex":
				identifier["hex"], d["page83"] = text, []any{identifier}
			case field != "" && f.Value.Type() == "string":
				d[field] = text
			case field != "":
				d[field] = json.RawMessage(text)
			}
		})
		return attach(ctx, s, map[string]any{"attach": []any{d}})
	}
}

func (a *app) simAttach() *cobra.Command {
	var attachAs func(context.Context, *session, disk) error
	var content, file, text string
	c := a.leaf(page{
		use:   "attach SIZE",
		short: "Attach a new disk",
		long: `Attach a new disk, and print its number. SIZE is 20Gi, 20GiB or a number of bytes. The content is
one of:

  blank      nothing
  ntfs       a GPT with an NTFS volume; --file puts a file on it
  linux-gpt  a GPT with one Linux partition, which CSI Proxy must not touch
  ext4       an ext4 file system without a partition table
  mbr        an MBR with an NTFS volume; --file puts a file on it

Windows remembers per LUN whether a disk is offline or read-only. So at the LUN of an earlier
disk the disk can arrive in that disk's state.`,
		example: `  csi-proxyctl sim attach 10GiB --serial disk-7
  csi-proxyctl sim attach 10GiB --like 1 --lun 4
  csi-proxyctl sim attach 1GiB --content ntfs --file '\data.txt' --text hello --offline --read-only
  csi-proxyctl sim attach 1GiB --content linux-gpt --page83 'Google  pvc-9'`,
	}, 1, func(ctx context.Context, s *session, args []string) error {
		size, err := output.ParseSize(args[0])
		if err != nil {
			return usageError{err}
		}
		fill, ok := contents[content]
		switch {
		case !ok:
			return usagef("--content must be one of %s", strings.Join(slices.Sorted(maps.Keys(contents)), ", "))
		case file != "" && content != "ntfs" && content != "mbr":
			return usagef("--file needs --content ntfs or mbr")
		case text != "" && file == "":
			return usagef("--text needs --file")
		}
		d, volume := disk{"size": size}, map[string]any{}
		switch entry := map[string]any{"path": strings.ReplaceAll(file, "/", `\`)}; {
		case text != "":
			entry["content"] = text
			volume["files"] = []any{entry}
		case file != "":
			entry["emptyFile"] = true
			volume["files"] = []any{entry}
		}
		fill(d, volume)
		return attachAs(ctx, s, d)
	})
	attachAs = hardware(c.Flags())
	c.Flags().Uint32("sector-size", 0, "512 or 4096 (default: that of --like, else 512)")
	c.Flags().StringVar(&content, "content", "blank", "content of the disk: blank, ntfs, linux-gpt, ext4, mbr")
	c.Flags().StringVar(&file, "file", "", `path of a file on the NTFS volume, such as '\data.txt'`)
	c.Flags().StringVar(&text, "text", "", "content of that file")
	return c
}

func (a *app) simClone() *cobra.Command {
	var attachAs func(context.Context, *session, disk) error
	var size string
	c := a.onDisk(page{
		use:   "clone DISK",
		short: "Attach a copy of a disk, as a restored snapshot",
		long: `Attach a copy of a disk, as a restored snapshot: the same ids, partitions and files. Windows keeps
the copy offline while the original is online.`,
		example: "  csi-proxyctl sim clone 4 --serial restored-1\n  csi-proxyctl sim clone 4 --size 20GiB",
	}, func(ctx context.Context, s *session, original uint32) error {
		d := disk{"cloneOf": original}
		if size != "" {
			bytes, err := output.ParseSize(size)
			if err != nil {
				return usageError{err}
			}
			d["size"] = bytes
		}
		return attachAs(ctx, s, d)
	})
	attachAs = hardware(c.Flags())
	c.Flags().StringVar(&size, "size", "", "size of the copy (default: that of the disk)")
	return c
}
