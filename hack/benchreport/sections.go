package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
)

// The budgets of the design.
const (
	leastRatio = 0.95
	leastCrowd = 0.90  // of questions about files with 64 callers
	mostStart  = 100.0 // milliseconds
	mostIdle   = 0.6   // of the original's memory
	mostLoaded = 0.7
	mostBinary = 15.0 // megabytes
)

// sections returns the parts of the page by name.
func sections(results []result, calls []group, system systemCalls, machine string) map[string]string {
	return map[string]string{
		"system":  systemTable(system).String(),
		"machine": machine,
		"budgets": budgets(results).String(),
		"rpc":     rpc(results).String(),
		"allocs":  allocations(results).String(),
		"clients": clients(results).String(),
		"calls":   callTable(calls).String(),
		"growth":  growth(results).String(),
		"scale":   scale(results).String(),
		"life":    lives(results).String(),
		"steps":   stepsOfLife(results).String(),
		"process": process(results).String(),
		"calm":    calm(results),
		"wine":    wineCalls(results).String(),
		"memory":  wineProcesses(results).String(),
	}
}

// budgets compares the results with the promises.
func budgets(results []result) *table {
	t := &table{header: []string{"Promise", "Budget", "Measured", "Kept"}}
	for _, callers := range []string{"1", "8", "64"} {
		var ratios []float64
		for _, r := range of(results, "RPC", "connections", "shared", "callers", callers) {
			ratios = append(ratios, r.values["ratio"])
		}
		if len(ratios) > 0 {
			slices.Sort(ratios)
			measured := fmt.Sprintf("%.2f (%.2f to %.2f)", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
			t.add("Throughput relative to a bare gRPC echo, Unix socket, "+callerCount(callers)+": median of all calls, and range",
				fmt.Sprintf("≥ %.2f", leastRatio), measured, yes(enough(ratios[len(ratios)/2])))
		}
	}
	for _, callers := range []string{"1", "8", "64"} {
		for _, r := range of(results, "Wine", "program", "ours", "call", "Check", "connections", "shared", "callers", callers) {
			ratio := r.values["ratio"]
			t.add("The same on a named pipe under Wine, Check, "+callerCount(callers), fmt.Sprintf("≥ %.2f", leastRatio), fmt.Sprintf("%.2f", ratio), yes(enough(ratio)))
		}
	}
	questionBudgets(t, results)
	ours, original := programs(results)
	for _, p := range []struct {
		what, unit string
		most       float64
	}{
		{"Start to first answer under Wine, ms", "start-ms", mostStart},
		{"Size of `csi-proxy.exe`, MB", "binary-MB", mostBinary},
	} {
		if value, ok := ours[p.unit]; ok {
			t.add(fmt.Sprintf("%s; the original: %.1f", p.what, original[p.unit]), fmt.Sprintf("≤ %.0f", p.most), fmt.Sprintf("%.1f", value), yes(math.Round(value*10)/10 <= p.most))
		}
	}
	for _, p := range []struct {
		when, unit string
		most       float64
	}{
		{"when idle", "idle-MB", mostIdle},
		{"after 64 callers and 10 s of rest", "loaded-MB", mostLoaded},
	} {
		if value, ok := ours[p.unit]; ok {
			share := value / original[p.unit]
			t.add(fmt.Sprintf("Memory %s under Wine, relative to the original: %.1f and %.1f MB", p.when, value, original[p.unit]),
				fmt.Sprintf("≤ %.1f", p.most), fmt.Sprintf("%.2f", share), yes(math.Round(share*100)/100 <= p.most))
		}
	}
	lists, lookups := 0.0, 0.0 // growth of their calls, relative to the growth of the node
	for _, g := range grown(results) {
		grew := g.calls[1] / g.calls[0]
		if g.things == "disks" && strings.HasPrefix(g.call, "List") {
			lists = max(lists, grew*float64(g.few)/float64(g.many))
		} else {
			lookups = max(lookups, grew)
		}
	}
	if lookups > 0 {
		t.add("Growth of a list's calls to Windows, relative to the growth from 10 to 1,000 disks", "≤ 1", fmt.Sprintf("%.2f", lists), yes(lists <= 1))
		t.add("Calls to Windows of all other operations with 1,000 disks, volumes and mappings and 10,000 links, relative to those with 10", "≤ 1", fmt.Sprintf("%.2f", lookups), yes(lookups <= 1))
	}
	scaleBudgets(t, results)
	return t
}

// enough compares a ratio rounded as it is printed.
func enough(ratio float64) bool { return math.Round(ratio*100)/100 >= leastRatio }

func yes(kept bool) string {
	if kept {
		return "yes"
	}
	return "**no**"
}

func callerCount(callers string) string {
	if callers == "1" {
		return "1 caller"
	}
	return callers + " callers"
}

func hundredths(value float64) string { return fmt.Sprintf("%.2f", value) }

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func rpc(results []result) *table {
	t := &table{header: []string{"Call", "Callers", "Connections", "Ratio to the echo", "Server, calls/s", "gRPC echo, calls/s", "Raw socket, calls/s"}}
	for _, r := range of(results, "RPC") {
		t.add(r.keys["call"], r.keys["callers"], r.keys["connections"], fmt.Sprintf("%.2f", r.values["ratio"]),
			whole(r.values["server/s"]), whole(r.values["echo/s"]), whole(r.values["raw/s"]))
	}
	return t
}

func allocations(results []result) *table {
	t := &table{header: []string{"Call", "Ratio to the echo", "Server", "gRPC echo", "What we add"}}
	for _, r := range of(results, "RPC", "connections", "shared", "callers", "1") {
		server, echo := r.values["server-allocs"], r.values["echo-allocs"]
		t.add(r.keys["call"], fmt.Sprintf("%.2f", server/echo), fmt.Sprintf("%.0f", server), fmt.Sprintf("%.0f", echo), fmt.Sprintf("%.0f", server-echo))
	}
	return t
}

func clients(results []result) *table {
	t := &table{header: []string{"Clients connected", "Time of a call relative to one client", "Time of a call, µs", "Memory per client, both sides, KiB"}}
	all := of(results, "Clients")
	for _, r := range all {
		t.add(thousands(r.number("clients")), fmt.Sprintf("%.2f", r.values["ns/call"]/all[0].values["ns/call"]),
			fmt.Sprintf("%.0f", r.values["ns/call"]/1e3), fmt.Sprintf("%.0f", r.values["KiB/client"]))
	}
	return t
}

// group is the table of calls of one API group.
type group struct {
	name string
	rows []calltable.Row
}

// callTables reads the call tables of the groups' tests.
func callTables(root string) ([]group, error) {
	files, err := filepath.Glob(filepath.Join(root, "pkg", "*", "hostapi", filepath.FromSlash(calltable.File)))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no tables of calls in %s: %w", root, err)
	}
	var groups []group
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rows, err := calltable.Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		hostapi := filepath.Dir(filepath.Dir(name))
		groups = append(groups, group{filepath.Base(filepath.Dir(hostapi)), rows})
	}
	return groups, nil
}

// systemCalls are the functions of Windows that operations call, and the messages that they send to
// Wine's server, in the same order.
type systemCalls struct{ calls, messages []calltable.Row }

func systemCallTables(root string) (tables systemCalls, err error) {
	dir := filepath.Join(root, "test", "wine", "systemcalls", "testdata")
	for name, rows := range map[string]*[]calltable.Row{"calls.txt": &tables.calls, "messages.txt": &tables.messages} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return tables, err
		}
		if *rows, err = calltable.Parse(string(text)); err != nil {
			return tables, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(tables.calls) != len(tables.messages) {
		return tables, fmt.Errorf("%s: %d operations have calls and %d have messages", dir, len(tables.calls), len(tables.messages))
	}
	return tables, nil
}

func systemTable(system systemCalls) *table {
	t := &table{header: []string{"Operation", "Calls", "Messages", "Which calls"}}
	for i, row := range system.calls {
		t.add(row.Operation, strconv.Itoa(row.Total()), strconv.Itoa(system.messages[i].Total()), row.Names())
	}
	return t
}

func callTable(groups []group) *table {
	t := &table{header: []string{"Operation", "Calls", "Which"}}
	for _, g := range groups {
		for _, row := range g.rows {
			t.add(g.name+": "+row.Operation, strconv.Itoa(row.Total()), row.Names())
		}
	}
	return t
}

// grownCall is a call on a node with few and with many objects.
type grownCall struct {
	things, call string
	few, many    int
	times        [2]float64 // nanoseconds
	calls        [2]float64
}

// grown pairs the smallest and the largest node of each call.
func grown(results []result) []grownCall {
	var found []grownCall
	for _, r := range of(results, "Growth") {
		for _, things := range []string{"disks", "volumes", "links", "mappings"} {
			count := r.number(things)
			if count == 0 {
				continue
			}
			i := slices.IndexFunc(found, func(g grownCall) bool { return g.things == things && g.call == r.keys["call"] })
			if i < 0 {
				found = append(found, grownCall{things: things, call: r.keys["call"], few: count})
				i = len(found) - 1
				found[i].times[0], found[i].calls[0] = r.values["ns/op"], r.values["calls/op"]
			}
			found[i].many = count
			found[i].times[1], found[i].calls[1] = r.values["ns/op"], r.values["calls/op"]
		}
	}
	return found
}

func growth(results []result) *table {
	t := &table{header: []string{"Objects and call", "From", "To", "Calls grow by", "Time grows by", "Time before, µs", "Time after, µs"}}
	for _, g := range grown(results) {
		t.add(g.things+": "+g.call, thousands(g.few), thousands(g.many),
			fmt.Sprintf("%.1f", g.calls[1]/g.calls[0]), fmt.Sprintf("%.1f", g.times[1]/g.times[0]),
			fmt.Sprintf("%.1f", g.times[0]/1e3), fmt.Sprintf("%.1f", g.times[1]/1e3))
	}
	return t
}

func process(results []result) *table {
	t := &table{header: []string{"Program", "Start to first answer, ms", "Memory idle, MB", "Memory after 64 callers, MB", "Size, MB"}}
	for _, r := range of(results, "Process") {
		t.add("`csi-proxy-sim` on Linux", fmt.Sprintf("%.0f", r.values["start-ms"]), fmt.Sprintf("%.1f", r.values["idle-MB"]),
			fmt.Sprintf("%.1f", r.values["loaded-MB"]), fmt.Sprintf("%.1f", r.values["binary-MB"]))
	}
	return t
}

// programs returns the figures of the daemon and the original under Wine.
func programs(results []result) (ours, original map[string]float64) {
	for _, r := range of(results, "Wine") {
		if _, ok := r.values["idle-MB"]; !ok {
			continue
		}
		switch r.keys["program"] {
		case "ours":
			ours = r.values
		case "original":
			original = r.values
		}
	}
	return ours, original
}

// questions are the calls about files that change nothing, as test/wine/daemon names them.
var questions = []string{"PathExists", "IsSymlink", "Mkdir-of-what-exists", "Rmdir-of-nothing"}

// questionBudgets compares questions about files with the original, and in a crowd with the echo.
func questionBudgets(t *table, results []result) {
	for _, call := range questions {
		name := strings.ReplaceAll(call, "-", " ")
		for _, callers := range []string{"1", "8", "64"} {
			key := []string{"call", call, "connections", "shared", "callers", callers}
			ours, original := of(results, "Wine", append(key, "program", "ours")...), of(results, "Wine", append(key, "program", "original")...)
			if len(ours) == 0 || len(original) == 0 {
				continue
			}
			relative := ours[0].values["server/s"] / original[0].values["server/s"]
			t.add("Throughput on a named pipe under Wine relative to the original, "+name+", "+callerCount(callers),
				"≥ 1.00", fmt.Sprintf("%.2f", relative), yes(math.Round(relative*100) >= 100))
			if callers == "64" {
				ratio := ours[0].values["ratio"]
				t.add("The same relative to the echo, "+name+", "+callerCount(callers),
					fmt.Sprintf("≥ %.2f", leastCrowd), fmt.Sprintf("%.2f", ratio), yes(math.Round(ratio*100) >= leastCrowd*100))
			}
		}
	}
}

// calm says how much the machine's host disturbed the measurements under Wine.
func calm(results []result) string {
	ours, _ := programs(results)
	taken, ok := ours["taken-%"]
	if !ok {
		return leftOut
	}
	return fmt.Sprintf("The machine's host took at most %.0f %% of the processors during a measurement that counts; %.0f measurements were made again.", taken, ours["repeated"])
}

// wineCalls compares calls on pipes: how many there are in a second, and the processor time that a call takes in
// all programs.
func wineCalls(results []result) *table {
	t := &table{header: []string{
		"Call", "Callers", "Connections", "Ours / original", "Ours / echo", "Original / echo", "Ours, calls/s", "Original, calls/s",
		"Processor time, µs: ours", "Original", "Echo",
	}}
	measured := of(results, "Wine", "program", "ours")
	slices.SortStableFunc(measured, func(a, b result) int {
		return cmp.Or(strings.Compare(a.keys["call"], b.keys["call"]), strings.Compare(b.keys["connections"], a.keys["connections"]), a.number("callers")-b.number("callers"))
	})
	for _, r := range measured {
		if r.keys["call"] == "" {
			continue
		}
		original := result{}
		if same := of(results, "Wine", "program", "original", "call", r.keys["call"], "connections", r.keys["connections"], "callers", r.keys["callers"]); len(same) > 0 {
			original = same[0]
		}
		relative := ""
		if rate, ok := original.values["server/s"]; ok {
			relative = hundredths(r.values["server/s"] / rate)
		}
		t.add(strings.ReplaceAll(r.keys["call"], "-", " "), r.keys["callers"], r.keys["connections"], relative,
			r.cell("ratio", hundredths), original.cell("ratio", hundredths), r.cell("server/s", whole), original.cell("server/s", whole),
			r.cell("cpu-us", whole), original.cell("cpu-us", whole), r.cell("echo-cpu-us", whole))
	}
	return t
}

func wineProcesses(results []result) *table {
	t := &table{header: []string{"Program", "Start to first answer, ms", "Memory idle, MB", "Threads idle", "Memory after load, MB", "Threads after load", "Size, MB"}}
	names := map[string]string{"ours": "`csi-proxy.exe`", "original": "the original", "nothing": "a Go program that does nothing"}
	for _, r := range of(results, "Wine") {
		if r.keys["call"] != "" {
			continue
		}
		cells := []string{names[r.keys["program"]]}
		for _, unit := range []string{"start-ms", "idle-MB", "idle-threads", "loaded-MB", "loaded-threads", "binary-MB"} {
			text := ""
			if value, ok := r.values[unit]; ok {
				text = strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64)
			}
			cells = append(cells, text)
		}
		t.add(cells...)
	}
	return t
}
