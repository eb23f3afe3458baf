package winapi

import "golang.org/x/sys/windows"

//sys	ntQueryAttributesFile(attributes *windows.OBJECT_ATTRIBUTES, info *fileBasicInformation) (ntstatus error) = ntdll.NtQueryAttributesFile

// fileBasicInformation is FILE_BASIC_INFORMATION.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/ns-wdm-_file_basic_information
type fileBasicInformation struct {
	_          [4]int64 // times
	attributes uint32
	_          uint32
}

// FileAttributes returns the attributes of a file that it does not open. A link with the last name
// is not followed: the attributes are the link's own.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/nf-ntifs-ntqueryattributesfile
func FileAttributes(name *windows.OBJECT_ATTRIBUTES) (uint32, error) {
	var info fileBasicInformation
	err := ntQueryAttributesFile(name, &info)
	return info.attributes, Error(err)
}
