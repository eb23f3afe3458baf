package apiversion_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
)

// ascending lists versions from the oldest to the newest.
var ascending = []string{
	"v1alpha1", "v1alpha2", "v1alpha10", "v1beta1", "v1beta2", "v1beta10", "v1",
	"v2alpha1", "v2beta1", "v2", "v10alpha1", "v10", "v4294967295beta4294967295", "v4294967295",
}

func TestVersion_Compare(t *testing.T) {
	for i, older := range ascending {
		for j, newer := range ascending {
			a, b := apiversion.NewVersionOrPanic(older), apiversion.NewVersionOrPanic(newer)
			want := apiversion.Equal
			if i < j {
				want = apiversion.Lesser
			} else if i > j {
				want = apiversion.Greater
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%s.Compare(%s) = %d, want %d", a, b, got, want)
			}
			if same := a == b; same != (want == apiversion.Equal) {
				t.Errorf("%s == %s is %t, but Compare gives %d", a, b, same, want)
			}
		}
	}
}

func TestVersion_ZeroValue(t *testing.T) {
	var zero apiversion.Version
	if got := zero.String(); got != "" {
		t.Errorf("String() = %q, want it empty", got)
	}
	if got := zero.Compare(apiversion.NewVersionOrPanic("v1alpha1")); got != apiversion.Lesser {
		t.Errorf("Compare(v1alpha1) = %d, want %d", got, apiversion.Lesser)
	}
}

func TestNewVersion_Valid(t *testing.T) {
	for _, name := range ascending {
		version, err := apiversion.NewVersion(name)
		if err != nil {
			t.Errorf("NewVersion(%q): %v", name, err)
		}
		if got := version.String(); got != name {
			t.Errorf("NewVersion(%q).String() = %q", name, got)
		}
		if !apiversion.IsValidVersion(name) {
			t.Errorf("IsValidVersion(%q) = false", name)
		}
	}
}

func TestNewVersion_Invalid(t *testing.T) {
	tests := []struct {
		name string
		why  string // a part of the message that distinguishes this mistake from others
	}{
		{"", "lower-case v"},
		{"1", "lower-case v"},
		{"V1", "lower-case v"},
		{" v1", "lower-case v"},
		{"v", "after v: a number is missing"},
		{"vv1", "after v: a number is missing"},
		{"v-1", "after v: a number is missing"},
		{"v+1", "after v: a number is missing"},
		{"v١", "after v: a number is missing"}, // a digit, but not an ASCII one
		{"valpha1", "after v: a number is missing"},
		{"v0", "after v: the number 0 begins with 0"},
		{"v01", "after v: the number 01 begins with 0"},
		{"v4294967296", "after v: the number 4294967296 does not fit"},
		{"v18446744073709551617", "does not fit"},
		{"v1 ", `" " is neither`},
		{"v1.2", `".2" is neither`},
		{"v1_000", `"_000" is neither`},
		{"v1gamma1", `"gamma1" is neither`},
		{"v1Alpha1", `"Alpha1" is neither`},
		{"v1rc1", `"rc1" is neither`},
		{"v1alpha", "after alpha: a number is missing"},
		{"v1beta", "after beta: a number is missing"},
		{"v1alpha0", "after alpha: the number 0 begins with 0"},
		{"v1beta01", "after beta: the number 01 begins with 0"},
		{"v1beta4294967296", "after beta: the number 4294967296 does not fit"},
		{"v1alpha1beta1", `"beta1" follows`},
		{"v1beta1\n", "follows"},
	}
	for _, test := range tests {
		version, err := apiversion.NewVersion(test.name)
		if err == nil {
			t.Errorf("NewVersion(%q) = %v, want an error", test.name, version)
			continue
		}
		if !strings.Contains(err.Error(), test.why) {
			t.Errorf("NewVersion(%q): %q does not contain %q", test.name, err, test.why)
		}
		if version != (apiversion.Version{}) {
			t.Errorf("NewVersion(%q) gives %v beside its error", test.name, version)
		}
		if apiversion.IsValidVersion(test.name) {
			t.Errorf("IsValidVersion(%q) = true", test.name)
		}
	}
}

func TestNewVersionOrPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for an invalid name")
		}
	}()
	apiversion.NewVersionOrPanic("v0")
}

// FuzzNewVersion compares the parser with the grammar written as a regular
// expression, and checks that names round-trip and that the order is one.
func FuzzNewVersion(f *testing.F) {
	grammar := regexp.MustCompile(`\Av[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?\z`)
	for i, name := range ascending {
		f.Add(name, ascending[len(ascending)-1-i])
	}
	f.Add("v01", "v1alpha0")
	f.Add("v4294967296", "v99999999999999999999999")
	f.Fuzz(func(t *testing.T, name, other string) {
		a, err := apiversion.NewVersion(name)
		if matches := grammar.MatchString(name); (err == nil) != matches &&
			!(matches && strings.Contains(err.Error(), "32 bits")) {
			t.Fatalf("NewVersion(%q): error %v, but matching the grammar is %t", name, err, matches)
		}
		if err != nil {
			return
		}
		if a.String() != name {
			t.Fatalf("NewVersion(%q).String() = %q", name, a)
		}
		b, err := apiversion.NewVersion(other)
		if err != nil {
			return
		}
		if ab, ba := a.Compare(b), b.Compare(a); ab != -ba || (ab == apiversion.Equal) != (name == other) {
			t.Fatalf("%q.Compare(%q) = %d, the reverse %d", name, other, ab, ba)
		}
	})
}
