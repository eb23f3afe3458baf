package cim

import (
	"slices"
	"testing"
)

// TestTap: queries are tapped, also those that fail. Methods are not, because their parameters can be
// passwords.
func TestTap(t *testing.T) {
	var classes []string
	Tap(func(class string, _ []map[string]any, _ error) { classes = append(classes, class) })
	defer Tap(nil)
	_, _ = Query(t.Context(), Object{Namespace: V2, Class: "Win32_NoSuchClass"}, "SerialNumber")
	_, _ = Call(t.Context(), Object{Namespace: SMB, Class: "MSFT_NoSuchClass"}, "Create", map[string]any{"Credential": "user:secret"})
	tapped("direct", []map[string]any{{"a": "b"}}, nil)
	if !slices.Equal(classes, []string{"Win32_NoSuchClass", "direct"}) {
		t.Errorf("tapped %q", classes)
	}
	Tap(nil)
	tapped("after", nil, nil)
	if len(classes) != 2 {
		t.Error("a tap that was removed is called")
	}
}
