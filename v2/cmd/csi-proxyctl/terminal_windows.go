package main

import "golang.org/x/sys/windows"

// openTerminal enables escape sequences in the console, and reports whether it could. restore
// resets the console for the shell.
// https://learn.microsoft.com/windows/console/console-virtual-terminal-sequences
func openTerminal(fd uintptr) (ok bool, restore func()) {
	console, mode := windows.Handle(fd), uint32(0)
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return false, func() {}
	}
	if err := windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return false, func() {}
	}
	return true, func() { _ = windows.SetConsoleMode(console, mode) }
}
