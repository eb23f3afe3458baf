package winpath

import (
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/winpathtest"
)

func TestCorpus(t *testing.T) {
	for _, c := range winpathtest.Corpus() {
		if got := judge(c.Path); got != c.Verdict {
			t.Errorf("hostile-paths.txt:%d: %.80q (%s) is %s, want %s", c.Line, c.Path, c.Group, got, c.Verdict)
		}
	}
}

func judge(path string) winpathtest.Verdict {
	clean, err := Clean(path)
	var invalid *InvalidError
	switch {
	case errors.As(err, &invalid):
		return winpathtest.Invalid
	case err != nil:
		return winpathtest.Verdict(err.Error())
	case Contains(winpathtest.WorkingDir, clean):
		return winpathtest.Inside
	default:
		return winpathtest.Outside
	}
}
