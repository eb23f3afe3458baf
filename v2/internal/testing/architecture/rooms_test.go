package architecture

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// rooms are all packages of ours, from top to bottom, by the patterns that rules use. A package may import packages of
// its own room and of the rooms below it, and nothing above. The last room that matches a package is its room, so a part
// of a room can be a room of its own.
var rooms = []string{
	// the programs, and what builds and tests them
	"v2/cmd/csi-proxy* v2/cmd/csi-proxyctl/... v2/test/...",
	// what tests share, and the tests of these rules
	"v2/internal/testing/...",
	// csi-proxyctl: a client, and what it prints
	"v2/cmd/pkg/ctl/...",
	// the gRPC API of an emulated node
	"v2/cmd/pkg/serve/...",
	// above the library: program, gRPC, pipes, service, metrics, logs
	"v2/cmd/pkg/daemon/...",
	// the emulated node and the conformance suite
	"v2/pkg/winsim/... v2/pkg/hosttest/...",
	// the library: one package per API group
	"v2/pkg/* !v2/pkg/winsim !v2/pkg/hosttest",
	// host logic: the order of calls, retries, the meaning of failures
	"v2/pkg/*/hostapi",
	// what host logic is made of
	"v2/internal/host/...",
	// the seam, and below it everything that knows Windows
	"v2/internal/win/...",
	// how work runs: locks, queues, many at once, recovered panics
	"v2/internal/tasks/...",
	// what a description of a node means: problems, and the paths of kubelet
	"v2/cmd/pkg/problem v2/cmd/pkg/kubelet",
	// the build's version, escaped text, strict YAML, and the client module
	"v2/internal/version v2/internal/printable v2/internal/strictyaml client/...",
}

func TestRooms(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		t.Run(goos, func(t *testing.T) {
			for _, violation := range checkRooms(rooms, load(t, goos)) {
				t.Error(violation)
			}
		})
	}
}

// checkRooms returns a sentence for each package without a room, each room without a package,
// and each import that leads upwards.
func checkRooms(rooms []string, g graph) (violations []string) {
	in := func(name string) int {
		for i, r := range slices.Backward(rooms) {
			if matches(r, name) {
				return i
			}
		}
		return -1
	}
	inhabited := make([]bool, len(rooms))
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !matches(anyOfUs, name) {
			continue
		}
		from := in(name)
		if from < 0 {
			violations = append(violations, name+" is in no room")
			continue
		}
		inhabited[from] = true
		for _, imported := range g[name] {
			if to := in(imported); to >= 0 && to < from {
				violations = append(violations, fmt.Sprintf("%s must not import %s, which is in a room above it: %s",
					name, imported, rooms[to]))
			}
		}
	}
	for i, r := range rooms {
		if !inhabited[i] {
			violations = append(violations, "the room "+r+" is empty")
		}
	}
	return violations
}
