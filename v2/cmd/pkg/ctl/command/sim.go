package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

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
			return inYAML(s, described)
		}),
		a.simApply(), a.simAttach(),
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
			return attach(ctx, s, fmt.Sprintf("reattach: [%d]", disk))
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
func (a *app) simChange(p page, text, object, done string) *cobra.Command {
	arguments := strings.Fields(p.use)[1:]
	return a.leaf(p, len(arguments), func(ctx context.Context, s *session, args []string) error {
		values, shown := []string{}, []string{}
		for i, argument := range arguments {
			value, typed, err := parse(argument, args[i])
			if err != nil {
				return err
			}
			encoded, err := json.Marshal(value.Interface())
			if err != nil {
				return err
			}
			values = append(values, fmt.Sprintf("$%d", i+1), string(encoded))
			shown = append(shown, fmt.Sprintf("{%d}", i+1), typed)
		}
		if _, err := change(ctx, s, strings.NewReplacer(values...).Replace(text)); err != nil {
			return err
		}
		words := strings.NewReplacer(shown...)
		return s.done(words.Replace(object), words.Replace(done))
	})
}

// change makes a change that the user has not written, and so knows no line or field of it.
func change(ctx context.Context, s *session, text string) (string, error) {
	answer, err := s.client.Change(ctx, text)
	failed, ok := status.FromError(err)
	if words := strings.SplitN(failed.Message(), " ", 4); ok && len(words) == 4 && words[0] == "line" {
		message := failed.Proto()
		message.Message = words[3]
		err = status.ErrorProto(message)
	}
	return answer, err
}

// attach makes a change that attaches a disk, and prints the disk's number.
func attach(ctx context.Context, s *session, text string) error {
	answer, err := change(ctx, s, text)
	if err != nil {
		return err
	}
	var changed struct {
		Disks []uint32 `json:"disks"`
	}
	if json.Unmarshal([]byte(answer), &changed) != nil || len(changed.Disks) != 1 {
		return fmt.Errorf("csi-proxy-sim answers %q; use the csi-proxyctl of its version", answer)
	}
	object := fmt.Sprintf("disk %d", changed.Disks[0])
	return s.Value(struct {
		Object     string `json:"object"`
		Done       string `json:"done"`
		DiskNumber uint32 `json:"diskNumber"`
	}{object, "attached", changed.Disks[0]}, func() string { return object + ": attached\n" })
}

func (a *app) simAttach() *cobra.Command {
	var serial string
	c := a.leaf(page{
		use:   "attach SIZE",
		short: "Attach a new blank disk",
		long: `Attach a new blank disk, and print its number. SIZE is 20Gi, 20GiB or a number of bytes. Disks with
content or of another kind, and copies, are for 'sim apply'.`,
		example: "  csi-proxyctl sim attach 10GiB --serial disk-7",
	}, 1, func(ctx context.Context, s *session, args []string) error {
		size, err := output.ParseSize(args[0])
		if err != nil {
			return usageError{err}
		}
		d := map[string]any{"size": size}
		if serial != "" {
			d["serial"] = serial
		}
		encoded, err := json.Marshal(map[string]any{"attach": []any{d}})
		if err != nil {
			return err
		}
		return attach(ctx, s, string(encoded))
	})
	c.Flags().StringVar(&serial, "serial", "", "serial number")
	return c
}

func (a *app) simApply() *cobra.Command {
	return a.leaf(page{
		use:   "apply CHANGE",
		short: "Make any change, in YAML",
		long: `Make any change, and print the numbers of disks that it attaches. CHANGE is YAML with the fields of Change
of package serve, or - to read it from standard input: disks with what is on them, copies of
disks, SMB servers and shares, accounts and their passwords, directories, and
faults, which replace those of earlier changes.`,
		example: `  csi-proxyctl sim apply 'attach: [{size: 1GiB, layout: gpt, partitions: [{volume: {fileSystem: ntfs}}]}]'
  csi-proxyctl sim apply 'attach: [{cloneOf: 4, serial: restored-1}]'
  csi-proxyctl sim apply 'stopSMBServers: [files]'
  csi-proxyctl sim apply - < change.yaml`,
	}, 1, func(ctx context.Context, s *session, args []string) error {
		text := args[0]
		if text == "-" {
			read, err := io.ReadAll(a.env.In)
			if err != nil {
				return err
			}
			text = string(read)
		}
		answer, err := s.client.Change(ctx, text)
		if err != nil {
			return err
		}
		return inYAML(s, answer)
	})
}

// inYAML prints what csi-proxy-sim answers, to people as YAML.
func inYAML(s *session, answer string) error {
	if !s.Format.ForScripts() {
		s.Format = output.YAML
	}
	return s.Value(json.RawMessage(answer), nil)
}
