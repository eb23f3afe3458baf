package cim

import "sync/atomic"

// RowTap learns of the rows that WMI answers to a query, one map of properties each. It must not change
// them. It is called concurrently. Methods have no tap: their parameters can be passwords.
type RowTap func(class string, rows []map[string]any, err error)

var tap atomic.Pointer[RowTap]

// Tap makes t the only tap of this process. Nil removes it.
func Tap(t RowTap) {
	if t == nil {
		tap.Store(nil)
		return
	}
	tap.Store(&t)
}

// tapped gives rows to the tap. Without one it costs one nil check.
func tapped(class string, rows []map[string]any, err error) {
	if t := tap.Load(); t != nil {
		(*t)(class, rows, err)
	}
}
