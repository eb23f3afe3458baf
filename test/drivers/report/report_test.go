package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

func TestFill(t *testing.T) {
	page := "# Title\n\n<!-- results: one -->\nold\n<!-- end -->\n\ntext\n\n<!-- results: two -->\n<!-- end -->\n"
	got, err := fill(page, "one", "\nnew\nlines\n\n")
	require.NoError(t, err)
	want := "# Title\n\n<!-- results: one -->\nnew\nlines\n<!-- end -->\n\ntext\n\n<!-- results: two -->\n<!-- end -->\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again, err := fill(got, "one", "new\nlines")
	if err != nil || again != got {
		t.Errorf("the second time: %v\n%s", err, again)
	}
}

func TestFill_Blocks(t *testing.T) {
	for _, page := range []string{
		"no block",
		"<!-- results: other -->\n<!-- end -->",
		strings.Repeat("<!-- results: one -->\n<!-- end -->\n", 2),
	} {
		if _, err := fill(page, "one", "text"); err == nil {
			t.Errorf("%q was filled", page)
		}
	}
}

func TestRows(t *testing.T) {
	table := Table{Header: []string{"Driver", "Result"}}
	table.Add("a", "OK")
	table.Add("b", "2 of 3; other: words")
	page, err := fill("<!-- results: one -->\n<!-- end -->\n<!-- results: two -->\n| c | d |\n<!-- end -->\n", "one", table.String())
	require.NoError(t, err)
	want := [][]string{{"Driver", "Result"}, {"a", "OK"}, {"b", "2 of 3; other: words"}}
	if got := rows(page, "one"); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := rows(page, "three"); got != nil {
		t.Errorf("a block that is not there has the rows %q", got)
	}
}

func TestKeep(t *testing.T) {
	table := Table{Header: []string{"Driver", "Result"}}
	earlier := [][]string{{"Driver", "Result"}, {"a", "OK"}, {"b", "OK"}, {"a", "2 of 3"}}
	table.Keep(earlier, "a")
	table.Keep(earlier, "c")
	want := "| Driver | Result |\n|---|---|\n| a | OK |\n| a | 2 of 3 |\n| c | not run |\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTable(t *testing.T) {
	table := Table{Header: []string{"Driver", "Result"}}
	table.Add("a", "OK")
	table.Add("b|c", "two\r\nlines")
	want := "| Driver | Result |\n|---|---|\n| a | OK |\n| b\\|c | two lines |\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
