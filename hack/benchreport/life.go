package main

import (
	"fmt"
	"math"
)

// lifeSteps are the steps of a volume's life, in the units of its benchmark.
var lifeSteps = []string{"stage", "publish", "stats", "expand", "unpublish", "unstage"}

// wholeLife is all of them.
const wholeLife = "life"

// lives is the table of whole lives. The machine's own time is that of one volume alone; what a life takes longer
// is ours, or that of others.
func lives(results []result) *table {
	t := &table{header: []string{
		"Mode", "Volumes at once", "The machine's own time, ms", "p50, ms", "p99, ms", "Overhead p50, ms", "Overhead p99, ms",
		"All, relative to one", "In queues and at locks, ms", "Calls to Windows",
	}}
	for _, r := range of(results, "Life") {
		alone, machine := aloneWith(results, r, wholeLife)
		p50, p99 := r.values[wholeLife+"-p50-ms"], r.values[wholeLife+"-p99-ms"]
		t.add(r.keys["mode"], r.keys["volumes"], whole(machine), whole(p50), whole(p99), whole(p50-machine), whole(p99-machine),
			fmt.Sprintf("%.2f", r.values["all-ms"]/alone.values["all-ms"]), fmt.Sprintf("%.1f", r.values["waits-ms/life"]), whole(r.values["calls/life"]))
	}
	return t
}

// stepsOfLife is the table of the overhead of each step.
func stepsOfLife(results []result) *table {
	t := &table{header: []string{"Step", "Mode", "The machine's own time, ms", "Alone: overhead p50, p99", "10 at once", "100 at once"}}
	for _, step := range lifeSteps {
		for _, first := range of(results, "Life", "volumes", "1") {
			_, machine := aloneWith(results, first, step)
			cells := []string{step, first.keys["mode"], fmt.Sprintf("%.1f", machine)}
			for _, volumes := range []string{"1", "10", "100"} {
				cell := ""
				for _, r := range of(results, "Life", "mode", first.keys["mode"], "volumes", volumes) {
					cell = fmt.Sprintf("%.1f, %.1f", r.values[step+"-p50-ms"]-machine, r.values[step+"-p99-ms"]-machine)
				}
				cells = append(cells, cell)
			}
			t.add(cells...)
		}
	}
	return t
}

// aloneWith returns the result with one volume in the same mode, and the machine's own time in a step.
func aloneWith(results []result, r result, step string) (alone result, machine float64) {
	for _, alone := range of(results, "Life", "mode", r.keys["mode"], "volumes", "1") {
		return alone, alone.values[step+"-machine-ms"]
	}
	return result{}, 0
}

// lifePlot shows how long a life takes over the number of volumes at once.
func lifePlot(results []result) plot {
	p := plot{title: "A volume's life", x: "volumes at once", y: "milliseconds"}
	for _, alone := range of(results, "Life", "volumes", "1") {
		mode := alone.keys["mode"]
		for _, percentile := range []string{"p50", "p99"} {
			line := series{name: mode + ", " + percentile}
			for _, r := range of(results, "Life", "mode", mode) {
				line.points = append(line.points, [2]float64{float64(r.number("volumes")), r.values[wholeLife+"-"+percentile+"-ms"]})
			}
			p.series = append(p.series, line)
		}
		own := series{name: mode + ", the machine's own time"}
		for _, r := range of(results, "Life", "mode", mode) {
			own.points = append(own.points, [2]float64{float64(r.number("volumes")), alone.values[wholeLife+"-machine-ms"]})
		}
		p.series = append(p.series, own)
	}
	return p
}

func whole(value float64) string { return thousands(int(math.Round(value))) }

// scale is the table of descriptions of nodes that grow.
func scale(results []result) *table {
	t := &table{header: []string{"Disks", "Links", "Mappings", "Asked by", "Time, ms", "Calls to Windows", "Calls for a disk"}}
	for _, r := range of(results, "Describe") {
		disks := r.number("disks")
		asker := map[string]string{"0": "the library", "1": "a client"}[r.keys["clients"]]
		if asker == "" {
			asker = r.keys["clients"] + " clients at once"
		}
		t.add(thousands(disks), thousands(5*disks), thousands(disks*7/10), asker, fmt.Sprintf("%.0f", r.values["ns/op"]/1e6),
			whole(r.values["calls/op"]), fmt.Sprintf("%.1f", r.values["calls/op"]/float64(disks)))
	}
	return t
}

// scaleBudgets compares descriptions with the promises.
func scaleBudgets(t *table, results []result) {
	few := of(results, "Describe", "clients", "0", "disks", "100")
	for _, r := range of(results, "Describe", "disks", "1000") {
		clients := map[string]string{"0": "as a library", "1": "for a client", "10": "for ten clients at once"}[r.keys["clients"]]
		seconds := r.values["ns/op"] / 1e9
		t.add("Description of 1,000 disks, 5,000 links and 700 mappings on the emulator "+clients+", s", "≤ 1", fmt.Sprintf("%.2f", seconds), yes(seconds <= 1))
		if r.keys["clients"] == "0" && len(few) > 0 {
			grew := r.values["calls/op"] / few[0].values["calls/op"] / 10
			t.add("Growth of its calls to Windows, relative to the growth from 100 to 1,000 disks", "≤ 1", fmt.Sprintf("%.2f", grew), yes(math.Round(grew*100) <= 100))
		}
	}
}
