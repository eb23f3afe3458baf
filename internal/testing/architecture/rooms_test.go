package architecture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// room is a part of the tree. Its packages go by the patterns that rules use.
type room struct {
	packages string
	holds    string
}

// rooms are all packages of ours, from top to bottom. A package may import packages of its own
// room and of the rooms below it, and nothing above. The last room that matches a package is its
// room, so a part of a room can be a room of its own.
var rooms = []room{
	{"v2/cmd/csi-proxy* v2/cmd/csi-proxyctl/... v2/hack/... v2/test/...", "the programs, and what builds and tests them"},
	{"v2/internal/testing/...", "what tests share, and the tests of these rules"},
	{"v2/cmd/ctl/...", "csi-proxyctl: a client, and what it prints"},
	{"v2/cmd/serve v2/cmd/servetest", "the gRPC API of an emulated node"},
	{"v2/cmd/daemon/...", "above the library: program, gRPC, pipes, service, metrics, logs"},
	{"v2/pkg/winsim/... v2/pkg/hosttest/...", "the emulated node and the conformance suite"},
	{"v2/pkg/* !v2/pkg/winsim !v2/pkg/hosttest", "the library: one package per API group"},
	{"v2/pkg/*/hostapi", "host logic: the order of calls, retries, the meaning of failures"},
	{"v2/internal/host/...", "what host logic is made of"},
	{"v2/internal/win/...", "the seam, and below it everything that knows Windows"},
	{"v2/internal/tasks/...", "how work runs: locks, queues, many at once, recovered panics"},
	{"v2/cmd/storage/...", "what a description of a node means: warnings, and the paths of kubelet"},
	{"v2/internal/version v2/internal/printable client/...", "the build's version, escaped text, and the client module"},
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
func checkRooms(rooms []room, g graph) (violations []string) {
	in := func(name string) int {
		for i, r := range slices.Backward(rooms) {
			if matches(r.packages, name) {
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
					name, imported, rooms[to].packages))
			}
		}
	}
	for i, r := range rooms {
		if !inhabited[i] {
			violations = append(violations, "the room "+r.packages+" is empty")
		}
	}
	return violations
}

// TestCheckRooms shows that the rule can be broken.
func TestCheckRooms(t *testing.T) {
	small := []room{{"v2/cmd/...", ""}, {"v2/pkg/...", ""}, {"v2/pkg/*/hostapi", ""}, {"v2/internal/tasks/...", ""}}
	for name, c := range map[string]struct {
		g    graph
		want []string
	}{
		"downwards": {graph{"v2/cmd/a": {"v2/pkg/b", "fmt"}, "v2/pkg/b": {"v2/pkg/c"}, "v2/pkg/c": {"v2/pkg/c/hostapi"}, "v2/pkg/c/hostapi": {"v2/internal/tasks/x"}, "v2/internal/tasks/x": nil}, nil},
		"upwards": {graph{"v2/cmd/a": nil, "v2/pkg/b": {"v2/cmd/a"}, "v2/pkg/b/hostapi": {"v2/pkg/b"}, "v2/internal/tasks/x": {"v2/pkg/b/hostapi"}}, []string{
			"v2/internal/tasks/x must not import v2/pkg/b/hostapi, which is in a room above it: v2/pkg/*/hostapi",
			"v2/pkg/b must not import v2/cmd/a, which is in a room above it: v2/cmd/...",
			"v2/pkg/b/hostapi must not import v2/pkg/b, which is in a room above it: v2/pkg/...",
		}},
		"no room": {graph{"v2/cmd/a": nil, "v2/pkg/b": nil, "v2/pkg/b/hostapi": nil, "v2/internal/tasks/x": nil, "v2/internal/new": nil}, []string{"v2/internal/new is in no room"}},
		"empty":   {graph{"v2/cmd/a": nil, "v2/pkg/b": nil, "v2/pkg/b/hostapi": nil}, []string{"the room v2/internal/tasks/... is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkRooms(small, c.g); !slices.Equal(got, c.want) {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
			}
		})
	}
}
