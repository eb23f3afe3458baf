package local

import (
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestReopen(t *testing.T) {
	for name, c := range map[string]struct {
		failures int
		code     winerr.Code
		opens    int
		want     error
	}{
		"at once":     {opens: 1},
		"sporadic":    {failures: 1, code: winerr.InvalidParameter, opens: 2},
		"rarer":       {failures: 3, code: winerr.InvalidParameter, opens: 4},
		"always":      {failures: 10, code: winerr.InvalidParameter, opens: 4, want: winerr.InvalidParameter},
		"not there":   {failures: 10, code: winerr.FileNotFound, opens: 1, want: winerr.FileNotFound},
		"link in way": {failures: 10, code: winerr.ReparsePointEncounter, opens: 1, want: winerr.ReparsePointEncounter},
	} {
		t.Run(name, func(t *testing.T) {
			opens := 0
			handle, err := reopen(func() (int, error) {
				if opens++; opens <= c.failures {
					return 0, c.code
				}
				return 7, nil
			})
			if !errors.Is(err, c.want) || opens != c.opens || (err == nil) != (handle == 7) {
				t.Errorf("got %d, %v after %d opens, want %v after %d", handle, err, opens, c.want, c.opens)
			}
		})
	}
}
