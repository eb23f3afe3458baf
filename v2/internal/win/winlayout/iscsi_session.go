package winlayout

import (
	"encoding/binary"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// sessionInfo is ISCSI_SESSION_INFOW. The names and Connections are pointers.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_session_infow
type sessionInfo struct {
	SessionID                                 win.SessionID
	InitiatorName, TargetNodeName, TargetName uint64
	ISID                                      [6]byte
	TSID                                      [2]byte
	ConnectionCount                           uint32
	_                                         uint32
	Connections                               uint64
}

// connectionInfo is ISCSI_CONNECTION_INFOW. The addresses are pointers.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_connection_infow
type connectionInfo struct {
	ConnectionID                    [2]uint64
	InitiatorAddress, TargetAddress uint64
	InitiatorSocket, TargetSocket   uint16
	CID                             [2]byte
	_                               uint16
}

// SessionIDSize is how large an ISCSI_UNIQUE_SESSION_ID is, which win.SessionID declares.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_unique_session_id
var SessionIDSize = binary.Size(win.SessionID{})

// EncodeSessionID builds an ISCSI_UNIQUE_SESSION_ID.
func EncodeSessionID(id win.SessionID) []byte { return encode(nil, id) }

// DecodeSessionID reads an ISCSI_UNIQUE_SESSION_ID.
func DecodeSessionID(b []byte) (win.SessionID, error) {
	return decode[win.SessionID](b, "ISCSI_UNIQUE_SESSION_ID")
}

// DecodeSessions reads an array of count ISCSI_SESSION_INFOWs. They point to names and
// connections that follow the array in the same buffer. Base is the address that the buffer had
// when Windows filled it: pointers are used only as offsets from there.
func DecodeSessions(b []byte, base uint64, count uint32) ([]win.Session, error) {
	var failure error
	text := func(pointer uint64) string {
		name, err := nameBehind(b, base, pointer)
		if err != nil {
			failure = err
		}
		return name
	}
	sessions, err := decodeArray(b, count, "ISCSI_SESSION_INFOW", func(s sessionInfo) win.Session {
		session := win.Session{ID: s.SessionID, TargetNodeName: text(s.TargetNodeName), TargetName: text(s.TargetName), Connections: s.ConnectionCount}
		// A count without connections would make a dead session look alive.
		if session.Connections > 0 {
			at, _ := behind(b, base, s.Connections)
			portals, err := decodeArray(at, s.ConnectionCount, "ISCSI_CONNECTION_INFOW", func(c connectionInfo) win.TargetPortal {
				address, _ := nameBehind(b, base, c.TargetAddress) // a session is worth more than where it leads
				return win.TargetPortal{Address: address, Port: c.TargetSocket}
			})
			if err != nil {
				failure = fmt.Errorf("%d connections of a session: %w", session.Connections, ErrMalformed)
			}
			session.Portals = portals
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

// deviceOnSession is ISCSI_DEVICE_ON_SESSIONW; of its names we use LegacyName.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_device_on_sessionw
type deviceOnSession struct {
	InitiatorName                   [nameUnits * maxHBAName]byte
	TargetName                      [nameUnits * maxISCSIName]byte
	ScsiAddress                     scsiAddress
	DeviceInterfaceType             guid
	DeviceInterfaceName, LegacyName [nameUnits * maxDevicePath]byte
	StorageDeviceNumber             storageDeviceNumber
	DeviceInstance                  uint32
}

// SessionDeviceSize is how large an ISCSI_DEVICE_ON_SESSIONW is.
var SessionDeviceSize = binary.Size(deviceOnSession{})

// DecodeSessionDevices reads an array of count ISCSI_DEVICE_ON_SESSIONWs.
func DecodeSessionDevices(b []byte, count uint32) ([]win.SessionDevice, error) {
	return decodeArray(b, count, "ISCSI_DEVICE_ON_SESSIONW", func(d deviceOnSession) win.SessionDevice {
		return win.SessionDevice{LUN: d.ScsiAddress.Lun, Device: d.StorageDeviceNumber.value(), LegacyName: name(d.LegacyName[:])}
	})
}
