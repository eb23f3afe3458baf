package windows_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// summary has a line for each question of TestBrief.
var summary []string

// restrictions are what this process has given up as csi-proxy.exe does, by the questions about it, with what Windows
// refused; nil if it has given up nothing.
var restrictions map[string]error

// TestBrief has the questions that change nothing and are quick. They come first, and of them those about what breaks
// every call. Without flags they are all that is asked, with the restrictions of csi-proxy.exe. The first time is that of
// a WMI provider that is not loaded: if it is more than 4 s, csi-proxyctl node calls the health unknown.
func TestBrief(t *testing.T) {
	g := &group{T: t, node: this, ctx: limited(t, 5*time.Minute)}
	m := g.machine
	const once, coldAndWarm = 1, 2
	ask := func(id, decides string, times int, do func(ctx context.Context) (any, error)) {
		g.ask(id, func(a *answer) {
			ctx, cancel := context.WithTimeout(g.ctx, 30*time.Second)
			defer cancel()
			var took []string
			var found string
			for range times {
				began := m.Elapsed()
				value, err := do(ctx)
				if found = text(value); err != nil { // which is a fact, not a failure
					found = "FAILS: " + strings.ReplaceAll(errorText(err), "\n", ", ")
				}
				took = append(took, text(m.Elapsed()-began))
			}
			a.measured("answer", found)
			summary = append(summary, fmt.Sprintf("%s: %s (%s) -> %s", id, found, strings.Join(took, ", then "), decides))
		})
	}
	for _, restriction := range [][2]string{
		{"Q-privileges", "whether csi-proxy.exe works with eight privileges"},
		{"Q-mitigations-com", "whether it keeps its mitigations, if what follows works"},
		{"Q-dll-search", "whether the directory of Windows has all libraries"},
	} {
		ask(restriction[0], restriction[1], once, func(context.Context) (any, error) {
			return map[bool]string{false: "not restricted", true: "restricted"}[restrictions != nil], restrictions[restriction[0]]
		})
	}
	ask("Q-volume-health", "how damage is named, and whether 4 s are enough", coldAndWarm, func(ctx context.Context) (any, error) {
		health, err := m.VolumeHealth(ctx, "")
		return countStatuses(health), err
	})
	ask("Q-volume-health-one", "whether to ask for one volume or for all", coldAndWarm, func(ctx context.Context) (any, error) {
		health, err := m.VolumeHealth(ctx, missingVolume)
		return countStatuses(health), err
	})
	ask("Q-disk-health", "how failing disks are named, and whether 4 s are enough", coldAndWarm, func(ctx context.Context) (any, error) {
		health, err := m.DiskHealth(ctx)
		return countStatuses(health), err
	})
	ask("Q-storage-refresh", "how long a new volume delays a format", coldAndWarm, func(ctx context.Context) (any, error) {
		return nil, m.RefreshStorageCache(ctx)
	})
	ask("Q-smb-list", "whether heal sees lost shares", coldAndWarm, func(ctx context.Context) (any, error) {
		mappings, err := m.SMBMappings(ctx)
		return len(mappings), err
	})
	ask("Q-no-media", "whether card readers and virtual media are disks; 21 is expected", once, g.removableDisks)
	ask("Q-disk-lists", "how drivers find their disks", once, func(ctx context.Context) (any, error) {
		all, err := g.disks.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
		if err != nil {
			return nil, err
		}
		named := 0
		for _, of := range all.DiskIDs {
			named += min(len(of.Page83), 1)
		}
		return fmt.Sprintf("%d disks, %d with page 83", len(all.DiskIDs), named), nil
	})
	ask("Q-san-policy", "whether new disks arrive offline", once, func(ctx context.Context) (any, error) { return m.SANPolicy(ctx) })
	ask("Q-iscsi-layouts", "whether iSCSI works at all", once, func(ctx context.Context) (any, error) {
		sessions, err := m.Sessions(ctx)
		return len(sessions), err
	})
	ask("Q-relative-open", "whether paths are opened without following links", once, func(ctx context.Context) (any, error) {
		directory, err := m.OpenDirectory(ctx, win.Anywhere(cmp.Or(os.Getenv("SystemRoot"), `C:\Windows`)))
		if err == nil {
			directory.Close()
		}
		return nil, err
	})
}

// countStatuses counts the pairs of HealthStatus and OperationalStatus.
func countStatuses[K comparable, T win.DiskHealth | win.VolumeHealth](all map[K]T) string {
	counts := map[string]int{}
	for _, health := range all {
		of := win.DiskHealth(health)
		counts[fmt.Sprintf("%d %#x", of.Status, of.Operational)]++
	}
	return "statuses " + strings.TrimPrefix(fmt.Sprint(counts), "map")
}

// removableDisks has the codes of removable disks.
func (g *group) removableDisks(ctx context.Context) (any, error) {
	devices, err := g.machine.DiskDevices(ctx)
	found := []string{}
	for _, device := range devices {
		if descriptor, err := g.machine.DeviceDescriptor(ctx, device); err == nil && descriptor.Removable {
			_, size := g.machine.DiskGeometry(ctx, device)
			_, table := g.machine.DriveLayout(ctx, device)
			found = append(found, fmt.Sprintf("size %d, table %d", winerr.CodeOf(size), winerr.CodeOf(table)))
		}
	}
	return fmt.Sprintf("removable: %q", found), err
}
