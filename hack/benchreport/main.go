// Benchreport fills pages with what benchstat prints about the output of benchmarks. 'make report' runs it for
// docs/performance.md, docs/status.md and the tables of bin/bench. A page says in comments what it shows:
//
//   - <!-- table: FILTER; ROWS; COLUMNS -->, before a table: arguments of benchstat.
//   - <!-- median: FILTER -->, in the row of a promise: which of the values is compared with the budget. The others are
//     least and most. With ROWS and COLUMNS, a value is the last column divided by the first, and by a fourth part.
package main

import (
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	benchstat := flag.String("benchstat", "benchstat", "the `program`")
	var pages []string
	flag.Func("page", "a `file` to rewrite; may be repeated", func(page string) error {
		pages = append(pages, page)
		return nil
	})
	flag.Parse()
	r := report{run: func(args ...string) ([]byte, error) {
		return exec.Command(*benchstat, append(args, flag.Args()...)...).Output() //nolint:gosec // a flag
	}}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		r.fail(err)
		text = r.fill(text)
		if r.err == nil {
			r.fail(os.WriteFile(page, text, 0o644)) //nolint:gosec // a flag
		}
	}
	if r.err != nil {
		log.Fatal(r.err)
	}
}

type report struct {
	run func(args ...string) ([]byte, error) // benchstat
	err error                                // the first
}

func (r *report) fail(err error) { r.err = cmp.Or(r.err, err) }

var (
	block   = regexp.MustCompile(`(?s)<!-- (machine|table):(.*?)-->\n.*?<!-- end -->`)
	promise = regexp.MustCompile(`(?m)^(\|[^|]*<!-- (median|least|most):(.*?)--> \| ([≥≤]) ([0-9.]+) \|).*$`)
)

// split returns the parts of a comment, and what benchstat takes for those that are missing.
func split(comment string) []string {
	parts := strings.Split(strings.TrimSpace(comment), "; ")
	return append(parts, []string{"", ".fullname", ".name", "1"}[len(parts):]...)
}

func (r *report) fill(page []byte) []byte {
	return promise.ReplaceAllFunc(block.ReplaceAllFunc(page, r.show), r.compare)
}

// show returns a block with what was measured.
func (r *report) show(old []byte) []byte {
	parts := block.FindSubmatch(old)
	load, _ := os.ReadFile("/proc/loadavg") // of a busy machine the figures scatter
	text := fmt.Sprintf("%d processors, %s, load %.4s, %s\n", runtime.NumCPU(), runtime.Version(), load, time.Now().UTC().Format(time.DateOnly))
	if string(parts[1]) == "table" {
		text = r.table(split(string(parts[2])))
	}
	heading, _, _ := strings.Cut(string(old), "\n")
	return fmt.Appendf(nil, "%s\n%s<!-- end -->", heading, cmp.Or(text, "Left out in this run.\n"))
}

// column has the values of a unit by the names of the rows.
type column struct {
	name   string
	values map[string]float64
}

// query returns the names of the rows and the columns of all units, in benchstat's order.
func (r *report) query(filter, row, col string) (rows []string, columns []column) {
	out, err := r.run("-format=csv", "-table=.name", "-filter", filter, "-row", row, "-col", col)
	if err != nil {
		r.fail(fmt.Errorf("benchstat -filter '%s' -row '%s' -col '%s': %w", filter, row, col, err))
	}
	// Each unit has lines with the keys of its columns, one with the unit, and one for each row.
	for unit := range strings.SplitSeq(string(out), "\n\n") {
		reader := csv.NewReader(strings.NewReader(unit))
		reader.FieldsPerRecord = -1
		lines, err := reader.ReadAll()
		r.fail(err)
		names, places, scale := map[int]string{}, map[int]column{}, 1.0
		for _, line := range lines {
			switch {
			case len(line) < 2 || line[0] == "geomean": // or the name of the benchmark
			case line[0] != "":
				if !slices.Contains(rows, line[0]) {
					rows = append(rows, line[0])
				}
				for i, c := range places {
					if i < len(line) && line[i] != "" {
						value, err := strconv.ParseFloat(line[i], 64)
						r.fail(err)
						c.values[line[0]] = value * scale
					}
				}
			default:
				for i, name := range line {
					names[i] += name + " "
					if i+1 == len(line) || line[i+1] != "CI" {
						continue
					}
					if strings.HasPrefix(name, "sec/") { // benchstat knows only seconds and bytes
						names[i], scale = strings.Replace(names[i], "sec/", "µs/", 1), 1e6
					} else if strings.HasSuffix(name, "-B") {
						names[i], scale = strings.Replace(names[i], "-B", "-MB", 1), 1e-6
					}
					places[i] = column{strings.TrimSpace(names[i]), map[string]float64{}}
					columns = append(columns, places[i])
				}
			}
		}
	}
	return rows, columns
}

// table returns what benchstat prints for a filter, rows and columns.
func (r *report) table(args []string) string {
	rows, columns := r.query(args[0], args[1], args[2])
	if len(rows) == 0 {
		return ""
	}
	var text strings.Builder
	keys := regexp.MustCompile(`/|@\([^)]*\)`).ReplaceAllString(args[1], "")
	fmt.Fprintf(&text, "| %s |", strings.ReplaceAll(keys, ",", ", "))
	for _, c := range columns {
		if args[2] == ".name" {
			_, c.name, _ = strings.Cut(c.name, " ")
		}
		fmt.Fprintf(&text, " %s |", c.name)
	}
	text.WriteString("\n|---|" + strings.Repeat("--:|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(&text, "\n| %s |", strings.ReplaceAll(row, "_", " "))
		for _, c := range columns {
			if value, ok := c.values[row]; ok {
				text.WriteString(" " + digits(value))
			}
			text.WriteString(" |")
		}
	}
	return text.String() + "\n"
}

// digits writes at least three of them.
func digits(value float64) string {
	if value >= 1000 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// compare returns the row of a promise with what was measured, if it was.
func (r *report) compare(old []byte) []byte {
	parts := promise.FindSubmatch(old)
	args := split(string(parts[3]))
	divisor, err := strconv.ParseFloat(args[3], 64)
	r.fail(err)
	budget, err := strconv.ParseFloat(string(parts[5]), 64)
	r.fail(err)
	rows, columns := r.query(args[0], args[1], args[2])
	var all []float64
	for _, row := range rows {
		last := 0.0
		for _, c := range columns {
			last = cmp.Or(c.values[row], last)
		}
		if args[2] != ".name" {
			last /= columns[0].values[row]
		}
		all = append(all, last/divisor)
	}
	if len(all) == 0 {
		return append(parts[1], " | |"...)
	}
	slices.Sort(all)
	counts := all[map[string]int{"least": 0, "median": len(all) / 2, "most": len(all) - 1}[string(parts[2])]]
	cell, kept := digits(counts), "yes"
	if len(all) > 1 {
		cell += fmt.Sprintf(" (%s to %s)", digits(all[0]), digits(all[len(all)-1]))
	}
	if rounded := math.Round(100*counts) / 100; rounded != budget && (rounded < budget) == (string(parts[4]) == "≥") {
		kept = "**no**"
	}
	return fmt.Appendf(parts[1], " %s | %s |", cell, kept)
}
