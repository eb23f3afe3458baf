package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// result is one line of benchmark output.
type result struct {
	benchmark string             // RPC
	keys      map[string]string  // the parts of its name: call is PathExists, callers is 8
	values    map[string]float64 // by unit
}

func (r result) number(key string) int {
	n, _ := strconv.Atoi(r.keys[key]) // 0 if it has none
	return n
}

// cell writes a value, or nothing if it was not measured.
func (r result) cell(unit string, write func(float64) string) string {
	value, ok := r.values[unit]
	if !ok {
		return ""
	}
	return write(value)
}

var processors = regexp.MustCompile(`-\d+$`)

// parse reads the output of go test -bench: names such as
// BenchmarkRPC/call=PathExists/callers=8-2, the number of iterations, and pairs of value and
// unit. It ignores other lines, except the one of a failed test. Of several lines with the same
// name the last counts.
func parse(output string) ([]result, error) {
	var results []result
	index := map[string]int{}
	for line := range strings.SplitSeq(output, "\n") {
		if strings.HasPrefix(line, "--- FAIL") || line == "FAIL" {
			return nil, fmt.Errorf("a benchmark failed: %s", line)
		}
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(fields) < 4 || len(fields)%2 != 0 {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		parts := strings.Split(name, "/")
		r := result{benchmark: parts[0], keys: map[string]string{}, values: map[string]float64{}}
		for _, part := range parts[1:] {
			key, value, _ := strings.Cut(part, "=")
			r.keys[key] = strings.ReplaceAll(value, "_", " ")
		}
		for i := 2; i < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", fields[0], err)
			}
			r.values[fields[i+1]] = value
		}
		if i, ok := index[name]; ok {
			results[i] = r
			continue
		}
		index[name] = len(results)
		results = append(results, r)
	}
	return results, nil
}

// of returns the results of a benchmark whose keys have these values, in their order.
func of(results []result, benchmark string, keys ...string) []result {
	var found []result
	for _, r := range results {
		matches := r.benchmark == benchmark
		for pair := range slices.Chunk(keys, 2) {
			matches = matches && r.keys[pair[0]] == pair[1]
		}
		if matches {
			found = append(found, r)
		}
	}
	return found
}
