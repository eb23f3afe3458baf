package winerr

import (
	"maps"
	"slices"
)

// KnownCodes returns every code that has a kind and a text.
func KnownCodes() []Code { return slices.Sorted(maps.Keys(codes)) }
