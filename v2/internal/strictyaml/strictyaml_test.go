package strictyaml_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/strictyaml"
)

type inner struct {
	Wait time.Duration `yaml:"wait"`
	Name string        `yaml:"name"`
}

type outer struct {
	Inner inner   `yaml:",inline"`
	List  []inner `yaml:"list"`
	One   *inner  `yaml:"one"`
	Do    func()  `yaml:"-"`
}

// TestEncode: what was encoded is read as it was, and zero fields are left out.
func TestEncode(t *testing.T) {
	want := struct {
		Outer []outer `yaml:"outer"`
	}{[]outer{{Inner: inner{Name: `C:\"x"`}, List: []inner{{Wait: 90 * time.Second}}, One: &inner{Name: "a"}}}}
	text, err := strictyaml.Encode(want)
	if err != nil || string(text) != `{"outer":[{"list":[{"wait":"1m30s"}],"name":"C:\\\"x\"","one":{"name":"a"}}]}` {
		t.Errorf("got %s, %v", text, err)
	}
	got := want
	got.Outer = nil
	if _, err := strictyaml.Decode(bytes.NewReader(text), "file", &got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestDecode: an error names file, line and field, also of an embedded struct.
func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nlist:\n  - {nam: b}": "file: line 3: list[0].nam: unknown field; use one of wait, name",
		"wait: soon":                   `file: line 1: wait: "soon" is not a duration such as 50ms`,
		"colour: red":                  "file: line 1: colour: unknown field; use one of wait, name, list, one",
		"":                             "file: the file is empty",
	} {
		var out outer
		if _, err := strictyaml.Decode(strings.NewReader(text), "file", &out); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
