package winlayout

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

// SCSI_ADDRESS
//
//	typedef struct _SCSI_ADDRESS {
//	  ULONG Length;
//	  UCHAR PortNumber;
//	  UCHAR PathId;
//	  UCHAR TargetId;
//	  UCHAR Lun;
//	} SCSI_ADDRESS;
//
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddscsi/ns-ntddscsi-_scsi_address
const (
	scsiPort   = 4
	scsiPath   = 5
	scsiTarget = 6
	scsiLUN    = 7
	scsiSize   = 8
)

// SCSIAddressSize is how much IOCTL_SCSI_GET_ADDRESS answers.
const SCSIAddressSize = scsiSize

// DecodeSCSIAddress reads a SCSI_ADDRESS, which has no bus number.
func DecodeSCSIAddress(b []byte) (win.SCSIAddress, error) {
	if err := need(b, scsiSize, "SCSI_ADDRESS"); err != nil {
		return win.SCSIAddress{}, err
	}
	return win.SCSIAddress{Port: b[scsiPort], Path: b[scsiPath], Target: b[scsiTarget], LUN: b[scsiLUN]}, nil
}
