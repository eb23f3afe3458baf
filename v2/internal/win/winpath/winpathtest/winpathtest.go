// Package winpathtest is a reviewed collection of hostile and merely odd paths, for
// the tests of whatever takes a path from a request.
package winpathtest

import (
	_ "embed" // the corpus
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// WorkingDir is the directory that the verdicts are about. The host is configured with
// it and no other.
const WorkingDir = `C:\var\lib\kubelet`

// Verdict is what must become of a request with a path.
type Verdict string

// The verdicts. Inside says nothing about calls with further rules, such as that a
// working directory is never removed.
const (
	Inside  Verdict = "inside"  // well formed, and WorkingDir or below it
	Outside Verdict = "outside" // well formed, but not there
	Invalid Verdict = "invalid" // not a path in the one spelling we accept
)

// Case is one path of the collection.
type Case struct {
	Line    int    // in hostile-paths.txt
	Group   string // the trick
	Path    string
	Verdict Verdict
}

//go:embed testdata/hostile-paths.txt
var corpus string

// Corpus returns all cases in the order of the file. It panics if the file is
// malformed.
func Corpus() []Case {
	cases, err := parse(corpus)
	if err != nil {
		panic("hostile-paths.txt: " + err.Error())
	}
	return cases
}

// parse reads the notation that the head of hostile-paths.txt explains.
func parse(text string) ([]Case, error) {
	var cases []Case
	group := ""
	for i, line := range strings.Split(text, "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			group = heading
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c, err := parseCase(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if c.Group = group; group == "" {
			return nil, fmt.Errorf("line %d: the case belongs to no group", i+1)
		}
		c.Line = i + 1
		cases = append(cases, c)
	}
	return cases, nil
}

func parseCase(line string) (Case, error) {
	verdict, field, ok := strings.Cut(line, "\t")
	if !ok {
		return Case{}, fmt.Errorf("%q has no tab", line)
	}
	c := Case{Verdict: Verdict(verdict)}
	switch c.Verdict {
	case Inside, Outside, Invalid:
	default:
		return Case{}, fmt.Errorf("unknown verdict %q", verdict)
	}
	field = repeat.ReplaceAllStringFunc(field, expand)
	if !strings.HasPrefix(field, `"`) {
		if field == "" || strings.TrimSpace(field) != field || strings.ContainsFunc(field, unprintable) {
			return Case{}, fmt.Errorf("%q must be quoted to survive editors", field)
		}
		c.Path = field
		return c, nil
	}
	var err error
	if c.Path, err = strconv.Unquote(field); err != nil {
		return Case{}, fmt.Errorf("%q: %w", field, err)
	}
	return c, nil
}

// unprintable reports whether a reviewer could not be sure to see r for what it is.
func unprintable(r rune) bool { return r < ' ' || r > '~' }

var repeat = regexp.MustCompile(`\{([^{}*]+)\*([0-9]+)\}`)

func expand(directive string) string {
	match := repeat.FindStringSubmatch(directive)
	count, err := strconv.Atoi(match[2])
	if err != nil {
		return directive
	}
	return strings.Repeat(match[1], count)
}
