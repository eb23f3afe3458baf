package main

import "golang.org/x/sys/windows"

// openTerminal makes a console understand the escape sequences of colours, which it shows as
// they are until somebody asks for that, and reports whether it does. restore puts it back
// for the shell.
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
