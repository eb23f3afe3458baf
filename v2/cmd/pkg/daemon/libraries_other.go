//go:build !windows

package daemon

func systemLibrariesOnly() error { return nil }
