package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// scsiAddress is SCSI_ADDRESS.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddscsi/ns-ntddscsi-_scsi_address
type scsiAddress struct {
	Length                            uint32
	PortNumber, PathID, TargetID, Lun byte
}

// SCSIAddressSize is how much IOCTL_SCSI_GET_ADDRESS answers.
var SCSIAddressSize = binary.Size(scsiAddress{})

// DecodeSCSIAddress reads a SCSI_ADDRESS, which has no bus number.
func DecodeSCSIAddress(b []byte) (win.SCSIAddress, error) {
	a, err := decode[scsiAddress](b, "SCSI_ADDRESS")
	return win.SCSIAddress{Port: a.PortNumber, Path: a.PathID, Target: a.TargetID, LUN: a.Lun}, err
}
