package bundle

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const (
	header    = `{"recording":{"format":"csi-proxy calls","version":1,"hashed":true}}` + "\n"
	described = `{"machine":{"Seq":1,"Disks":[]}}` + "\n"
)

// callsUpTo are lines of calls.
func callsUpTo(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `{"call":{"seq":%d,"method":"FlushVolume","in":{"id":"%s"}}}`+"\n", i+1, strings.Repeat("x", 1000))
	}
	return b.String()
}

// TestCalls: a recording keeps its header, its description and its end.
func TestCalls(t *testing.T) {
	long := callsUpTo(8000)
	for _, test := range []struct {
		name, file string
		hide       bool
		begin, end string // of the result
		problem    string
	}{
		{name: "short", file: header + described + "{}\n", begin: header + described + "{}\n", end: "{}\n"},
		{name: "a call before the description", file: header + "{}\n" + described + "{}\n", begin: header + "{}\n" + described, end: "{}\n"},
		{name: "a line is being written", file: header + described + "{}\n" + `{"call":`, begin: header + described + "{}\n", end: "{}\n"},
		{name: "hashes", file: header + described, hide: true, begin: header + described, end: described},
		{name: "names", file: strings.Replace(header, `,"hashed":true`, "", 1) + described, hide: true, problem: "start the daemon with -record-calls-hash-names"},
		{name: "long", file: header + described + long, begin: header + described + `{"lost":{"lines":`, end: long[len(long)-1000:]},
		{name: "long, a call before the description", file: header + "{}\n" + described + long, begin: header + described + `{"lost":{"lines":`, end: long[len(long)-1000:]},
		{name: "long, with hashes", file: header + described + long, hide: true, begin: header + described + `{"lost":{"lines":`, end: long[len(long)-1000:]},
		{name: "a description that does not fit", file: header + `{"machine":{"x":"` + strings.Repeat("x", MaxPart) + `"}}` + "\n", problem: "send the file itself"},
		{name: "no description", file: header + "{}\n", problem: "no description of the machine yet"},
		{name: "empty", problem: "not a recording"},
		{name: "something else", file: "I1115 a log\n", problem: "not a recording"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Calls(strings.NewReader(test.file), test.hide)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("%v, want one with %q", err, test.problem)
				}
				return
			}
			if err != nil || !bytes.HasPrefix(got, []byte(test.begin)) || !bytes.HasSuffix(got, []byte(test.end)) || len(got) > MaxPart {
				t.Errorf("%d bytes, %v: %.300s", len(got), err, got)
			}
		})
	}
}

// TestCalls_LeftOut: what is left out and what is there are all calls.
func TestCalls_LeftOut(t *testing.T) {
	const count = 8000
	got, err := Calls(strings.NewReader(header+described+callsUpTo(count)), false)
	if err != nil {
		t.Fatal(err)
	}
	leftOut, first := 0, 0
	lines := strings.Split(string(got), "\n")
	if _, err := fmt.Sscanf(lines[2], `{"lost":{"lines":%d,`, &leftOut); err != nil {
		t.Fatal(lines[2], err)
	}
	if _, err := fmt.Sscanf(lines[3], `{"call":{"seq":%d,`, &first); err != nil {
		t.Fatal(lines[3], err)
	}
	if leftOut == 0 || first != leftOut+1 || len(lines)-4 != count-leftOut {
		t.Errorf("%d calls are left out, %d are there, the first is %d", leftOut, len(lines)-4, first)
	}
	if len(got) < MaxPart-2000 {
		t.Errorf("%d bytes, and %d would fit", len(got), MaxPart)
	}
}

// TestClean_Calls: with hidden names, ids in a recording become other ids, the same for the same.
func TestClean_Calls(t *testing.T) {
	const id, other, basicData = "0c51a9e0-0000-0000-0000-100000000000", "d0000007-0000-4000-8000-000000000001", "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7"
	files := []File{
		{Name: "log.txt", Content: []byte("volume " + id + " of alice\n")},
		{Name: "calls.txt", Content: []byte(header + `{"call":{"in":{"a":"\\\\?\\Volume{` + id + `}\\","b":"` + strings.ToUpper(id) + `","c":"` + other + `","d":"` + basicData + `","password":"hunter2"}}}` + "\n" + `{"machine":{"Signature":4}}` + "\n")},
	}
	Clean(files, NewNames([]byte(`{"user":"alice"}`)))
	const want = header + `{"call":{"in":{"a":"\\\\?\\Volume{00000001-0000-4000-8000-000000000000}\\","b":"00000001-0000-4000-8000-000000000000","c":"00000002-0000-4000-8000-000000000000","d":"` + basicData + `","password":"[removed]"}}}` + "\n" + `{"machine":{"Signature":4}}` + "\n"
	if got := string(files[1].Content); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(files[0].Content); got != "volume id-1 of user-1\n" {
		t.Errorf("got %s", got)
	}
}
