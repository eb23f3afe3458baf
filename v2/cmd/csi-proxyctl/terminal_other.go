//go:build !windows

package main

import "golang.org/x/term"

// openTerminal reports whether this is a terminal. Package command handles TERM=dumb.
func openTerminal(fd uintptr) (ok bool, restore func()) {
	return term.IsTerminal(int(fd)), func() {}
}
