package replay

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func TestUnzipped(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, file string
		most       int64
		length     int
		failure    string
	}{
		{"plain", "plain", 1, 5, ""},
		{"empty", "", 1, 0, ""},
		{"gzip", zipped.String(), 1000, 1000, ""},
		{"too large", zipped.String(), 999, 0, "it is too large; decompress it, and replay a part of it"},
		{"cut", zipped.String()[:20], 1000, 0, "unexpected EOF"},
		{"cut in the header", zipped.String()[:5], 1000, 0, "nothing of it can be decompressed: unexpected EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := []byte(nil), error(nil)
			r, err := unzipped(strings.NewReader(test.file), test.most)
			if err == nil {
				text, err = io.ReadAll(r)
			}
			failure := ""
			if err != nil {
				failure = err.Error()
			}
			if failure != test.failure || err == nil && len(text) != test.length {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
}
