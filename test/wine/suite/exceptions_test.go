//go:build linux && wine

package suite

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed exceptions.txt
var exceptionList string

// exception is a test that TestUnits leaves out.
type exception struct {
	dir  string // of the package
	kind string
	test string // "" means all of the package
}

// kinds of exceptions; exceptions.txt says what they mean.
const (
	fails = "fails"
	slow  = "slow"
	apart = "apart"
	here  = "here"
	unix  = "unix"
)

// parseExceptions reads a list of exceptions, and the problems of those that it cannot read.
func parseExceptions(list string) (all []exception, problems []error) {
	for number, line := range strings.Split(list, "\n") {
		text, reason, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		complain := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("exceptions.txt:%d: "+format, append([]any{number + 1}, args...)...))
		}
		switch {
		case len(fields) == 0:
			continue
		case len(fields) != 3:
			complain("a line has a package, a kind and a test")
			continue
		case strings.TrimSpace(reason) == "":
			complain("a line ends with # and the reason")
		case !slices.Contains([]string{fails, slow, apart, here, unix}, fields[1]):
			complain("there is no kind %q", fields[1])
		case fields[1] == fails && fields[2] == "*":
			complain("name the tests that fail")
		case fields[1] == unix && fields[2] != "*":
			complain("what is built for Unix only need not be named")
		}
		e := exception{dir: fields[0], kind: fields[1], test: fields[2]}
		if e.test == "*" {
			e.test = ""
		}
		if slices.ContainsFunc(all, func(other exception) bool { return other.dir == e.dir && (other.test == e.test || other.test == "") }) {
			complain("%s is excepted already", e)
		}
		all = append(all, e)
	}
	return all, problems
}

func (e exception) String() string { return e.dir + "." + e.test }

// pattern matches the test of an exception as -test.run and -test.skip do, a part of its name at a time.
func (e exception) pattern() string {
	parts := strings.Split(e.test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// exists reports whether a package with these sources of tests has the test of an exception.
func (e exception) exists(sources string) bool {
	name, _, _ := strings.Cut(e.test, "/")
	return regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`).MatchString(sources)
}
