package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// passOn are the licences that allow us to distribute programs with their code.
var passOn = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT"}

// minCoverage is the percentage of a licence file that known licences must cover. The rest is
// headings and copyright lines.
const minCoverage = 75

// licensesOf returns the SPDX names of the licences of a text, sorted. A text may have several.
func licensesOf(text string) ([]string, error) {
	coverage := licensecheck.Scan([]byte(text))
	var found []string
	for _, match := range coverage.Match {
		switch {
		case match.IsURL: // a reference inside another licence's text
		case !slices.Contains(passOn, match.ID):
			return nil, fmt.Errorf("its licence is %s; read it, and add it to passOn in tools/release/license.go if we may pass it on", match.ID)
		default:
			found = append(found, match.ID)
		}
	}
	if len(found) == 0 || coverage.Percent < minCoverage {
		return nil, fmt.Errorf("known licences cover %.0f%% of it, want %d%%; read it; it begins with %.60q", coverage.Percent, minCoverage, strings.TrimSpace(text))
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
