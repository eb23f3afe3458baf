// Package winlayout encodes and decodes the C structures of Windows calls, on byte slices at
// explicit offsets, so that every layout is tested and fuzzed on every OS. Offsets are those of
// 64-bit Windows, little-endian. Each codec shows the structure as the Windows SDK declares it.
//
// Drivers and file systems fill these buffers, and some of them are wrong: every length and
// offset is checked against the bytes that are really there.
package winlayout
