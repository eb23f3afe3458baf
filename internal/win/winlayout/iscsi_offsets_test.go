package winlayout_test

import (
	"testing"
	"unsafe"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// The structures as iscsidsc.h declares them. Pointers are those of 64-bit Windows.
type (
	iscsiTargetPortal struct {
		SymbolicName [256]uint16
		Address      [256]uint16
		Socket       uint16
	}
	iscsiTargetPortalInfo struct {
		InitiatorName       [256]uint16
		InitiatorPortNumber uint32
		SymbolicName        [256]uint16
		Address             [256]uint16
		Socket              uint16
	}
	iscsiLoginOptions struct {
		Version              uint32
		InformationSpecified uint32
		LoginFlags           uint32
		AuthType             uint32
		HeaderDigest         uint32
		DataDigest           uint32
		MaximumConnections   uint32
		DefaultTime2Wait     uint32
		DefaultTime2Retain   uint32
		UsernameLength       uint32
		PasswordLength       uint32
		Username             uint64
		Password             uint64
	}
	iscsiUniqueSessionID struct {
		AdapterUnique   uint64
		AdapterSpecific uint64
	}
	iscsiSessionInfo struct {
		SessionID       iscsiUniqueSessionID
		InitiatorName   uint64
		TargetNodeName  uint64
		TargetName      uint64
		ISID            [6]byte
		TSID            [2]byte
		ConnectionCount uint32
		Connections     uint64
	}
	iscsiConnectionInfo struct {
		ConnectionID     iscsiUniqueSessionID
		InitiatorAddress uint64
		TargetAddress    uint64
		InitiatorSocket  uint16
		TargetSocket     uint16
		CID              [2]byte
	}
	iscsiDeviceOnSession struct {
		InitiatorName       [256]uint16
		TargetName          [224]uint16
		ScsiAddress         scsiAddress
		DeviceInterfaceType guid
		DeviceInterfaceName [260]uint16
		LegacyName          [260]uint16
		StorageDeviceNumber storageDeviceNumber
		DeviceInstance      uint32
	}
	persistentLoginInfo struct {
		TargetName             [224]uint16
		IsInformationalSession byte
		InitiatorInstance      [256]uint16
		InitiatorPortNumber    uint32
		TargetPortal           iscsiTargetPortal
		SecurityFlags          uint64
		Mappings               uint64
		LoginOptions           iscsiLoginOptions
	}
)

func TestISCSIOffsets(t *testing.T) {
	var (
		portal     iscsiTargetPortal
		info       iscsiTargetPortalInfo
		login      iscsiLoginOptions
		id         iscsiUniqueSessionID
		session    iscsiSessionInfo
		connection iscsiConnectionInfo
		device     iscsiDeviceOnSession
		persistent persistentLoginInfo
	)
	tested := map[string]bool{}
	for _, want := range []struct {
		field     string
		offset    int     // written down from Microsoft's documentation
		structure uintptr // computed from the declaration
	}{
		{"ISCSI_TARGET_PORTALW", 1026, unsafe.Sizeof(portal)},
		{"ISCSI_TARGET_PORTALW.SymbolicName", 0, unsafe.Offsetof(portal.SymbolicName)},
		{"ISCSI_TARGET_PORTALW.Address", 512, unsafe.Offsetof(portal.Address)},
		{"ISCSI_TARGET_PORTALW.Socket", 1024, unsafe.Offsetof(portal.Socket)},
		{"ISCSI_TARGET_PORTAL_INFOW", 1544, unsafe.Sizeof(info)},
		{"ISCSI_TARGET_PORTAL_INFOW.InitiatorName", 0, unsafe.Offsetof(info.InitiatorName)},
		{"ISCSI_TARGET_PORTAL_INFOW.InitiatorPortNumber", 512, unsafe.Offsetof(info.InitiatorPortNumber)},
		{"ISCSI_TARGET_PORTAL_INFOW.SymbolicName", 516, unsafe.Offsetof(info.SymbolicName)},
		{"ISCSI_TARGET_PORTAL_INFOW.Address", 1028, unsafe.Offsetof(info.Address)},
		{"ISCSI_TARGET_PORTAL_INFOW.Socket", 1540, unsafe.Offsetof(info.Socket)},
		{"ISCSI_LOGIN_OPTIONS", 64, unsafe.Sizeof(login)},
		{"ISCSI_LOGIN_OPTIONS.Version", 0, unsafe.Offsetof(login.Version)},
		{"ISCSI_LOGIN_OPTIONS.InformationSpecified", 4, unsafe.Offsetof(login.InformationSpecified)},
		{"ISCSI_LOGIN_OPTIONS.AuthType", 12, unsafe.Offsetof(login.AuthType)},
		{"ISCSI_LOGIN_OPTIONS.UsernameLength", 36, unsafe.Offsetof(login.UsernameLength)},
		{"ISCSI_LOGIN_OPTIONS.PasswordLength", 40, unsafe.Offsetof(login.PasswordLength)},
		{"ISCSI_LOGIN_OPTIONS.Username", 48, unsafe.Offsetof(login.Username)},
		{"ISCSI_LOGIN_OPTIONS.Password", 56, unsafe.Offsetof(login.Password)},
		{"ISCSI_UNIQUE_SESSION_ID", 16, unsafe.Sizeof(id)},
		{"ISCSI_UNIQUE_SESSION_ID.AdapterUnique", 0, unsafe.Offsetof(id.AdapterUnique)},
		{"ISCSI_UNIQUE_SESSION_ID.AdapterSpecific", 8, unsafe.Offsetof(id.AdapterSpecific)},
		{"ISCSI_SESSION_INFOW", 64, unsafe.Sizeof(session)},
		{"ISCSI_SESSION_INFOW.SessionId", 0, unsafe.Offsetof(session.SessionID)},
		{"ISCSI_SESSION_INFOW.TargetNodeName", 24, unsafe.Offsetof(session.TargetNodeName)},
		{"ISCSI_SESSION_INFOW.TargetName", 32, unsafe.Offsetof(session.TargetName)},
		{"ISCSI_SESSION_INFOW.ConnectionCount", 48, unsafe.Offsetof(session.ConnectionCount)},
		{"ISCSI_SESSION_INFOW.Connections", 56, unsafe.Offsetof(session.Connections)},
		{"ISCSI_CONNECTION_INFOW", 40, unsafe.Sizeof(connection)},
		{"ISCSI_DEVICE_ON_SESSIONW", 2040, unsafe.Sizeof(device)},
		{"ISCSI_DEVICE_ON_SESSIONW.ScsiAddress", 960, unsafe.Offsetof(device.ScsiAddress)},
		{"ISCSI_DEVICE_ON_SESSIONW.LegacyName", 1504, unsafe.Offsetof(device.LegacyName)},
		{"ISCSI_DEVICE_ON_SESSIONW.StorageDeviceNumber", 2024, unsafe.Offsetof(device.StorageDeviceNumber)},
		{"PERSISTENT_ISCSI_LOGIN_INFOW", 2080, unsafe.Sizeof(persistent)},
		{"PERSISTENT_ISCSI_LOGIN_INFOW.TargetName", 0, unsafe.Offsetof(persistent.TargetName)},
		{"PERSISTENT_ISCSI_LOGIN_INFOW.InitiatorInstance", 450, unsafe.Offsetof(persistent.InitiatorInstance)},
		{"PERSISTENT_ISCSI_LOGIN_INFOW.InitiatorPortNumber", 964, unsafe.Offsetof(persistent.InitiatorPortNumber)},
		{"PERSISTENT_ISCSI_LOGIN_INFOW.TargetPortal", 968, unsafe.Offsetof(persistent.TargetPortal)},
	} {
		got, known := winlayout.ISCSIOffsets[want.field]
		if !known || got != want.offset || uintptr(got) != want.structure {
			t.Errorf("%s at %d, want %d as written down and %d as declared", want.field, got, want.offset, want.structure)
		}
		tested[want.field] = true
	}
	for field := range winlayout.ISCSIOffsets {
		if !tested[field] {
			t.Errorf("%s has no line in this test", field)
		}
	}
}
