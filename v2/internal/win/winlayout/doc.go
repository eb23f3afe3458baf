// Package winlayout encodes and decodes the C structures of Windows calls, on byte slices, so that
// every layout is tested and fuzzed on every OS. The Go structures have the fields that the Windows
// SDK declares, and name all padding of 64-bit Windows. Two that are read very often, or have names
// of any length, are read at offsets instead.
//
// Drivers and file systems fill these buffers, and some of them are wrong: every length and
// offset is checked against the bytes that are really there.
package winlayout
