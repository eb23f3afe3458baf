package sddl

import "slices"

// Access lists of the root of a volume.
const (
	// NewRoot is that of a new NTFS: members of Users can create directories there, but no files.
	// Versions of Windows may differ.
	// https://github.com/kubernetes-csi/csi-proxy/issues/382
	// https://github.com/kubernetes/kubernetes/issues/131341
	NewRoot = "D:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICIIO;GA;;;CO)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;;0x1200a9;;;WD)"

	// UsersModify lets members of Users change everything. It has the entry of CREATOR OWNER that
	// new volumes have.
	UsersModify = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;BU)(A;OICIIO;GA;;;CO)"
)

// Same reports whether two texts are access lists with the same entries, in any order. The order
// has no effect, because entries only allow access.
func Same(a, b string) bool {
	first, errFirst := Parse(a)
	second, errSecond := Parse(b)
	return errFirst == nil && errSecond == nil && slices.Equal(first.sorted(), second.sorted())
}

// sorted returns the entries as texts in order, with generic rights spelled out.
func (l List) sorted() []string {
	texts := make([]string, len(l))
	for i, e := range l {
		texts[i] = List{{Flags: e.Flags, Mask: e.Rights(), SID: e.SID}}.String()
	}
	slices.Sort(texts)
	return texts
}
