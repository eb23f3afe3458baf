package record

import (
	"strings"
	"testing"
)

// TestRead_Many: a small file of gzip can hold very many calls, which are not all read.
func TestRead_Many(t *testing.T) {
	for _, l := range []line{{Call: &Call{}}, {Raw: &Raw{}}} {
		recording := Recording{Calls: make([]Call, MaxCalls-10), Raw: make([]Raw, 9)}
		if err := recording.add(l); err != nil {
			t.Error(err)
		}
		const want = "the recording has more than 1000000 calls and raw answers; "
		if err := recording.add(l); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRead_Normal: a recording that another program has written again is the same.
func TestRead_Normal(t *testing.T) {
	const header = `{"recording":{"format":"csi-proxy calls","version":1}}` + "\n"
	for _, test := range []struct{ in, out string }{
		{`{"name":"a b","x":[1,2.50]}`, `{"A":"\\u00e9","B":null}`},
		{`{ "name" : "a b" , "x": [1, 2.50] }`, `{"A": "\\u00e9", "B": null}`},
		{`{"\u006eame":"a\u0020b","x":[1,2.50]}`, `{"A":"\\\u0075\u0030\u0030e9","B":null}`},
	} {
		recording, err := Read(strings.NewReader(header + `{"call":{"seq":1,"method":"x","in":` + test.in + `,"out":` + test.out + `}}` + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if c := recording.Calls[0]; string(c.In) != `{"name":"a b","x":[1,2.50]}` || string(c.Out) != `{"A":"\\u00e9","B":null}` {
			t.Errorf("%s and %s become %s and %s", test.in, test.out, c.In, c.Out)
		}
	}
	for text, want := range map[string]string{`"<\u00e9\/\u2028>"`: `"<é/\u2028>"`, `"\u003c"`: `"<"`} {
		if got := string(normal([]byte(text))); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}
