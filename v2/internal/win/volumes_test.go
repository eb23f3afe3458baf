package win_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The rule that ParseVolumeID follows.
var volumeID = regexp.MustCompile(`^\\\\\?\\[Vv][Oo][Ll][Uu][Mm][Ee](\{[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\})\\?$`)

func FuzzParseVolumeID(f *testing.F) {
	const id = `\\?\Volume{0123ABcd-0000-1111-2222-89efABCDEF01}`
	for _, text := range []string{"", id, id + `\`, id + `\\`, id + `\..\x`, id + "\n", strings.ToUpper(id), strings.Replace(id, "0123", "x123", 1), strings.Replace(id, "Vol", "Voĺ", 1), strings.Replace(id, `\?`, `\.`, 1), id[:len(id)-1], strings.Replace(id, "-", "", 1)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := win.ParseVolumeID(text)
		match := volumeID.FindStringSubmatch(text)
		if ok != (match != nil) {
			t.Fatalf("ParseVolumeID(%q) = %q, %t", text, got, ok)
		}
		if ok && string(got) != `\\?\Volume`+strings.ToLower(match[1])+`\` {
			t.Errorf("ParseVolumeID(%q) = %q", text, got)
		}
	})
}
