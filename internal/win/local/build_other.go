//go:build !windows

package local

// Build is empty: this is not Windows.
func Build() string { return "" }
