package compattest

import (
	"strings"
	"testing"
)

// good is a small page in order. The cases replace a part of it.
const good = "| D1 | It runs | **Kept**, by `make build` | [TestWrong] |\n" +
	"| D2 | It has `--kubelet-path` | **Differs**: see D1 | [Flags](operations.md#flags), `cmd/csi-proxy` |\n" +
	"| D3 | It is installed | **Elsewhere**: `csi-proxyctl service install --name x` | [page](../README.md) |\n" +
	"\n## What differs\n\nD2\n\n" +
	"[TestWrong]: ../internal/testing/compattest/wrong_test.go\n"

// TestWrong shows that mistakes are found, and nothing else.
func TestWrong(t *testing.T) {
	r := load(t)
	if problems := r.check(good); problems != nil {
		t.Fatalf("a page in order: %q", problems)
	}
	for _, c := range []struct{ part, instead, want string }{
		{"| D2 |", "| D4 |", "row D4 stands where D2 belongs"},
		{"**Kept**", "Kept", "row D1 says neither"},
		{" | [TestWrong] |", " |", "row D1 has 2 cells"},
		{"[page](../README.md)", "some page", "row D3 refers to nothing"},
		{"see D1", "see D9", "there is no row D9"},
		{"\nD2\n", "\nD3\n", "what differs"},
		{"**Elsewhere**", "**Differs**", "what differs"},
		{"../README.md", "../README.txt", "README.txt"},
		{"#flags", "#flag", "has no section #flag"},
		{"](operations.md#flags)", "](#exit-codes)", "has no section #exit-codes"},
		{"[TestWrong] |", "[TestRight] |", "the file of TestRight is not given"},
		{"[TestWrong]: ", "[TestWrongs]: ", "has no TestWrongs"},
		{"wrong_test.go", "right_test.go", "right_test.go"},
		{"[TestWrong] |", "[page](../README.md) |", "nothing refers to TestWrong"},
		{"make build", "make money", "the Makefile has no such target"},
		{"--kubelet-path", "--kubelet-paths=x", "there is no flag --kubelet-paths=x"},
		{"--kubelet-path", "csi-proxy.exe -v=2 -binary", "there is no flag -binary"},
		{"--kubelet-path", "csi-proxy-sim -pipe-security-descriptor", "there is no flag -pipe-security-descriptor"},
		{"--name x", "-windows-service", "there is no flag -windows-service"},
		{"service install", "service instal", "csi-proxyctl has no such command"},
		{"cmd/csi-proxy`", "cmd/csiproxy`", "there is no such path"},
	} {
		if strings.Count(good, c.part) != 1 {
			t.Fatalf("%q is not in the page once", c.part)
		}
		problems := strings.Join(r.check(strings.Replace(good, c.part, c.instead, 1)), "\n")
		if !strings.Contains(problems, c.want) {
			t.Errorf("%q instead of %q: got %q, want %q", c.instead, c.part, problems, c.want)
		}
	}
}

func TestSections(t *testing.T) {
	text := "# The library\n## Paths: containerd 1.6 and 1.7\n### `New` and `log_file`?\n```\n# no heading\n```\n#no heading\n"
	got := sections(text)
	for _, anchor := range []string{"the-library", "paths-containerd-16-and-17", "new-and-log_file"} {
		if !got[anchor] {
			t.Errorf("%s is missing", anchor)
		}
	}
	if len(got) != 3 {
		t.Errorf("got %v", got)
	}
}
