package winlayout

// Offsets are the ones the decoders use, by structure and field.
var Offsets = map[string]int{
	"REPARSE_DATA_BUFFER.ReparseTag":                       reparseTag,
	"REPARSE_DATA_BUFFER.ReparseDataLength":                reparseDataLength,
	"REPARSE_DATA_BUFFER.SubstituteNameOffset":             reparseNames,
	"REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.Flags":  reparseSymlinkFlags,
	"REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.Buffer": reparseSymlinkBuffer,
	"REPARSE_DATA_BUFFER.MountPointReparseBuffer.Buffer":   reparseMountBuffer,
	"FILE_FULL_DIR_INFO.NextEntryOffset":                   dirNext,
	"FILE_FULL_DIR_INFO.FileAttributes":                    dirAttributes,
	"FILE_FULL_DIR_INFO.FileNameLength":                    dirNameLength,
	"FILE_FULL_DIR_INFO.EaSize":                            dirEaSize,
	"FILE_FULL_DIR_INFO.FileName":                          dirName,
}
