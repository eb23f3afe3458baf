package windows_test

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed later.txt
var later string

// TestLater has the questions that no program can ask yet.
func TestLater(t *testing.T) {
	for text := range strings.Lines(later) {
		if id, reason, ok := strings.Cut(strings.TrimSpace(text), ": "); ok && strings.HasPrefix(id, "Q-") {
			t.Run(id, func(t *testing.T) { t.Skip(reason) })
		}
	}
}
