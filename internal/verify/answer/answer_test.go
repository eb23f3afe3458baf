package answer_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
)

func document() answer.Document {
	return answer.Document{
		Format: answer.Format, Program: "test", Machine: answer.Machine{Kind: answer.Windows, System: "Windows Server 2022", Installation: "Server Core", Build: "10.0.20348"},
		Answers: []answer.Answer{
			{ID: "Q-case", Status: answer.Answered, Facts: []answer.Fact{{"another case", "ok"}, {"only here", "yes"}}, Measured: []answer.Fact{{"took", "5 ms"}}},
			{ID: "Q-msr", Status: answer.Failed, Reason: "the device reported an error", Evidence: []string{"first\nsecond"}},
			{ID: "Q-events", Status: answer.NotAsked, Reason: "needs the daemon"},
		},
		Cases: []answer.Case{{Suite: "disk", Name: "one", Outcome: "failed", Reason: "wrong", Log: []string{"wrong"}}, {Suite: "disk", Name: "two", Outcome: "passed"}},
	}
}

func TestParse(t *testing.T) {
	content, err := document().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := answer.Parse(content)
	if err != nil || !reflect.DeepEqual(got, document()) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestParse_Refuses: a document cannot claim answers that no run gives.
func TestParse_Refuses(t *testing.T) {
	fact := []answer.Fact{{"x", "y"}}
	for want, a := range map[string]answer.Answer{
		`"Q-nothing" is not a question`:                  {ID: "Q-nothing", Status: answer.Answered, Facts: fact},
		"Q-case is there twice":                          {ID: "Q-case", Status: answer.NotAsked},
		`Q-vhdx has the status "known"`:                  {ID: "Q-vhdx", Status: "known", Facts: fact},
		"Q-vhdx is answered without an answer":           {ID: "Q-vhdx", Status: answer.Answered, Evidence: []string{"seen"}},
		"Q-vhdx has a value without a name":              {ID: "Q-vhdx", Status: answer.Answered, Facts: []answer.Fact{{"", "y"}}},
		"Q-azure-lun is answered, but csi-proxy-verify":  {ID: "Q-azure-lun", Status: answer.Answered, Facts: fact},
		"Q-azure-lun is failed, but csi-proxy-verify do": {ID: "Q-azure-lun", Status: answer.Failed, Reason: "x"},
	} {
		d := document()
		d.Answers = append(d.Answers, a)
		content, err := d.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := answer.Parse(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}

func TestCompare(t *testing.T) {
	want, got := document(), document()
	if differences := answer.Compare(got, want); len(differences) != 1 || differences[0].Fact != "asking" {
		t.Errorf("equal documents differ, besides the question that failed: %v", differences)
	}
	got.Answers[1].Status = answer.NotAsked
	for name, test := range map[string]struct {
		got, want []answer.Fact
		status    answer.Status // of got
		differ    []string
	}{
		"equal":               {[]answer.Fact{{"a", "x"}}, []answer.Fact{{"a", "x"}}, answer.Answered, nil},
		"equal, many":         {[]answer.Fact{{"entry", "x"}, {"entry", "y"}}, []answer.Fact{{"entry", "x"}, {"entry", "y"}}, answer.Answered, nil},
		"another value":       {[]answer.Fact{{"a", "it does not exist (Windows error 2)"}}, []answer.Fact{{"a", "ok"}}, answer.Answered, []string{"Q-case, a: it does not exist (Windows error 2), not ok"}},
		"another outcome":     {[]answer.Fact{{"swap", "no"}}, []answer.Fact{{"after the swap", "ok"}}, answer.Answered, []string{"Q-case, swap: no, not nothing", "Q-case, after the swap: nothing, not ok"}},
		"one entry more":      {[]answer.Fact{{"entry", "x"}, {"entry", "y"}}, []answer.Fact{{"entry", "x"}}, answer.Answered, []string{"Q-case, entry: x, y, not x"}},
		"one entry less":      {[]answer.Fact{{"entry", "x"}}, []answer.Fact{{"entry", "x"}, {"entry", "y"}}, answer.Answered, []string{"Q-case, entry: x, not x, y"}},
		"an empty value":      {[]answer.Fact{{"label", ""}}, nil, answer.Answered, []string{"Q-case, label: , not nothing"}},
		"failed on the way":   {[]answer.Fact{{"a", "x"}}, []answer.Fact{{"a", "x"}, {"b", "y"}}, answer.Failed, []string{"Q-case, asking: failed: , not an answer"}},
		"failed, and differs": {[]answer.Fact{{"a", "z"}}, []answer.Fact{{"a", "x"}, {"b", "y"}}, answer.Failed, []string{"Q-case, a: z, not x", "Q-case, asking: failed: , not an answer"}},
		"not asked":           {[]answer.Fact{{"a", "z"}}, []answer.Fact{{"a", "x"}}, answer.NotAsked, nil},
	} {
		got.Answers[0].Facts, got.Answers[0].Status, got.Answers[0].Measured = test.got, test.status, nil
		want.Answers[0].Facts = test.want
		var differ []string
		for _, d := range answer.Compare(got, want) {
			differ = append(differ, d.String())
		}
		if !slices.Equal(differ, test.differ) {
			t.Errorf("%s: the differences are %q, want %q", name, differ, test.differ)
		}
	}
}

func TestReport(t *testing.T) {
	report := document().Report()
	for _, want := range []string{
		"# csi-proxy-verify on Windows Server 2022\n", "- Installation: Server Core\n- Build: 10.0.20348\n",
		"- Questions: 1 answered, 1 failed, 1 not asked\n", "- Cases: 1 passed, 1 failed, 0 skipped\n",
		"### Q-case\n\nDoes a relative open ignore case?\n", "- another case: ok\n", "- measured: took: 5 ms\n",
		"- failed: the device reported an error\n", "- seen: first\n  second\n", "- Q-events: needs the daemon\n", "- failed: disk/one: wrong\n",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

func FuzzParse(f *testing.F) {
	content, err := document().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := answer.Parse(content)
		if err != nil {
			return
		}
		_ = d.Report()
		again, err := d.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := answer.Parse(again); err != nil {
			t.Errorf("cannot be read again: %v", err)
		}
	})
}
