package winlayout

import (
	"encoding/binary"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// ISCSI_UNIQUE_SESSION_ID
//
//	typedef struct _ISCSI_UNIQUE_SESSION_ID {
//	  ULONGLONG AdapterUnique;
//	  ULONGLONG AdapterSpecific;
//	} ISCSI_UNIQUE_SESSION_ID;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_unique_session_id
const (
	sessionIDUnique   = 0
	sessionIDSpecific = 8
	sessionIDSize     = 16
)

// ISCSI_SESSION_INFOW
//
//	typedef struct {
//	  ISCSI_UNIQUE_SESSION_ID SessionId;
//	  PWCHAR                  InitiatorName;
//	  PWCHAR                  TargetNodeName;
//	  PWCHAR                  TargetName;
//	  UCHAR                   ISID[6];
//	  UCHAR                   TSID[2];
//	  ULONG                   ConnectionCount;
//	  PISCSI_CONNECTION_INFOW Connections;
//	} ISCSI_SESSION_INFOW;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_session_infow
const (
	sessionID              = 0
	sessionTargetNodeName  = 24
	sessionTargetName      = 32
	sessionConnectionCount = 48
	sessionConnections     = 56
	sessionSize            = 64
)

// ISCSI_CONNECTION_INFOW; we only check that they are there.
//
//	typedef struct {
//	  ISCSI_UNIQUE_CONNECTION_ID ConnectionId;
//	  PWCHAR                     InitiatorAddress;
//	  PWCHAR                     TargetAddress;
//	  USHORT                     InitiatorSocket;
//	  USHORT                     TargetSocket;
//	  UCHAR                      CID[2];
//	} ISCSI_CONNECTION_INFOW;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_connection_infow
const connectionSize = 40

// SessionIDSize is how large an ISCSI_UNIQUE_SESSION_ID is.
const SessionIDSize = sessionIDSize

// EncodeSessionID builds an ISCSI_UNIQUE_SESSION_ID.
func EncodeSessionID(id win.SessionID) []byte {
	b := binary.LittleEndian.AppendUint64(nil, id.AdapterUnique)
	return binary.LittleEndian.AppendUint64(b, id.AdapterSpecific)
}

// DecodeSessionID reads an ISCSI_UNIQUE_SESSION_ID.
func DecodeSessionID(b []byte) (win.SessionID, error) {
	if err := need(b, sessionIDSize, "ISCSI_UNIQUE_SESSION_ID"); err != nil {
		return win.SessionID{}, err
	}
	return decodeSessionID(b), nil
}

func decodeSessionID(b []byte) win.SessionID {
	return win.SessionID{
		AdapterUnique:   binary.LittleEndian.Uint64(b[sessionIDUnique:]),
		AdapterSpecific: binary.LittleEndian.Uint64(b[sessionIDSpecific:]),
	}
}

// DecodeSessions reads an array of count ISCSI_SESSION_INFOWs. They point to names and
// connections that follow the array in the same buffer. Base is the address that the buffer had
// when Windows filled it: pointers are used only as offsets from there.
func DecodeSessions(b []byte, base uint64, count uint32) ([]win.Session, error) {
	var failure error
	text := func(element []byte, offset int) string {
		name, err := nameBehind(b, base, binary.LittleEndian.Uint64(element[offset:]))
		if err != nil {
			failure = err
		}
		return name
	}
	sessions, err := decodeArray(b, count, sessionSize, "ISCSI_SESSION_INFOW", func(element []byte) win.Session {
		session := win.Session{
			ID:             decodeSessionID(element[sessionID:]),
			TargetNodeName: text(element, sessionTargetNodeName),
			TargetName:     text(element, sessionTargetName),
			Connections:    uint32At(element, sessionConnectionCount),
		}
		// A count without connections would make a dead session look alive.
		at, err := behind(b, base, binary.LittleEndian.Uint64(element[sessionConnections:]))
		if session.Connections > 0 && (err != nil || uint64(session.Connections) > uint64(len(at)/connectionSize)) {
			failure = fmt.Errorf("%d connections of a session: %w", session.Connections, ErrMalformed)
		}
		return session
	})
	if err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, failure
	}
	return sessions, nil
}

// behind returns what a pointer into a buffer points to, up to the end of the buffer.
func behind(b []byte, base, pointer uint64) ([]byte, error) {
	if pointer < base || pointer-base >= uint64(len(b)) {
		return nil, fmt.Errorf("a pointer out of the list: %w", ErrMalformed)
	}
	return b[pointer-base:], nil
}

// nameBehind reads the name to which a pointer points; for a null pointer it is empty.
func nameBehind(b []byte, base, pointer uint64) (string, error) {
	if pointer == 0 {
		return "", nil
	}
	at, err := behind(b, base, pointer)
	if err != nil {
		return "", err
	}
	for end := 0; end+1 < len(at) && end <= nameUnits*maxSessionNames; end += nameUnits {
		if at[end] == 0 && at[end+1] == 0 {
			return decodeUTF16(at[:end]), nil
		}
	}
	return "", fmt.Errorf("a name without an end: %w", ErrMalformed)
}

// ISCSI_DEVICE_ON_SESSIONW; of its names we use LegacyName.
//
//	typedef struct {
//	  WCHAR                 InitiatorName[MAX_ISCSI_HBANAME_LEN];
//	  WCHAR                 TargetName[MAX_ISCSI_NAME_LEN + 1];
//	  SCSI_ADDRESS          ScsiAddress;
//	  GUID                  DeviceInterfaceType;
//	  WCHAR                 DeviceInterfaceName[MAX_PATH];
//	  WCHAR                 LegacyName[MAX_PATH];
//	  STORAGE_DEVICE_NUMBER StorageDeviceNumber;
//	  DWORD                 DeviceInstance;
//	} ISCSI_DEVICE_ON_SESSIONW;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_device_on_sessionw
const (
	deviceSCSIAddress = 960
	deviceLegacyName  = 1504
	deviceNumber      = 2024
	deviceSize        = 2040
)

// SessionDeviceSize is how large an ISCSI_DEVICE_ON_SESSIONW is.
const SessionDeviceSize = deviceSize

// DecodeSessionDevices reads an array of count ISCSI_DEVICE_ON_SESSIONWs.
func DecodeSessionDevices(b []byte, count uint32) ([]win.SessionDevice, error) {
	return decodeArray(b, count, deviceSize, "ISCSI_DEVICE_ON_SESSIONW", func(b []byte) win.SessionDevice {
		number := b[deviceNumber:]
		return win.SessionDevice{
			LUN: b[deviceSCSIAddress+scsiLUN],
			Device: win.DeviceNumber{
				Type:      win.DeviceType(uint32At(number, numberType)),
				Number:    uint32At(number, numberDevice),
				Partition: uint32At(number, numberPartition),
			},
			LegacyName: nameAt(b, deviceLegacyName, maxDevicePath),
		}
	})
}
