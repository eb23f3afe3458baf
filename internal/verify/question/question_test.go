package question_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

var update = flag.Bool("update", false, "write the tables of docs/testing.md")

const page = "../../../docs/testing.md"

// TestPage compares the tables of the page with the catalogue.
func TestPage(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, section := range question.Sections() {
		begin, end := "<!-- questions: "+section.Name+" -->\n", "<!-- end of questions: "+section.Name+" -->\n"
		before, rest, found := strings.Cut(text, begin)
		old, after, ended := strings.Cut(rest, end)
		switch table := section.Markdown(); {
		case !found || !ended:
			t.Errorf("%s has no %s...%s", page, strings.TrimSpace(begin), strings.TrimSpace(end))
		case old != table && !*update:
			t.Errorf("the questions about %s in %s are out of date; run: go test ./internal/verify/question -update", section.Name, page)
		default:
			text = before + begin + table + end + after
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var id = regexp.MustCompile(`\bQ-[a-z0-9-]*[a-z0-9]`)

// TestCatalogue checks that IDs are unique and well formed, and that the page uses no others.
func TestCatalogue(t *testing.T) {
	var known []string
	for _, q := range question.All() {
		if id.FindString(q.ID) != q.ID || slices.Contains(known, q.ID) {
			t.Errorf("the ID %q is malformed or not unique", q.ID)
		}
		if q.Question == "" || strings.Contains(q.Question+q.Expected+q.IfNot+q.How+q.NotAsked, "\n") {
			t.Errorf("%s has no text, or one with line breaks", q.ID)
		}
		known = append(known, q.ID)
	}
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range id.FindAllString(string(content), -1) {
		if !slices.Contains(known, name) {
			t.Errorf("%s names %s, which the catalogue does not have", page, name)
		}
	}
}

func TestFind(t *testing.T) {
	if q, ok := question.Find("Q-msr"); !ok || !strings.Contains(q.Question, "IOCTL_DISK_CREATE_DISK") {
		t.Errorf("Q-msr is %+v, %v", q, ok)
	}
	if q, ok := question.Find("Q-nothing"); ok {
		t.Errorf("Q-nothing is %+v", q)
	}
}
