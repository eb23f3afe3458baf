//go:build !windows

package main

import "golang.org/x/term"

// openTerminal reports whether this is a terminal. All of them know colours, unless TERM says
// otherwise, of which package command takes care.
func openTerminal(fd uintptr) (ok bool, restore func()) {
	return term.IsTerminal(int(fd)), func() {}
}
