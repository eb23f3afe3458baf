package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// ISCSI_LOGIN_OPTIONS
//
//	typedef struct {
//	  ULONG                              Version;
//	  ISCSI_LOGIN_OPTIONS_INFO_SPECIFIED InformationSpecified;
//	  ISCSI_LOGIN_FLAGS                  LoginFlags;
//	  ISCSI_AUTH_TYPES                   AuthType;
//	  ISCSI_DIGEST_TYPES                 HeaderDigest;
//	  ISCSI_DIGEST_TYPES                 DataDigest;
//	  ULONG                              MaximumConnections;
//	  ULONG                              DefaultTime2Wait;
//	  ULONG                              DefaultTime2Retain;
//	  ULONG                              UsernameLength;
//	  ULONG                              PasswordLength;
//	  PUCHAR                             Username;
//	  PUCHAR                             Password;
//	} ISCSI_LOGIN_OPTIONS;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_login_options
const (
	loginVersion        = 0
	loginSpecified      = 4
	loginAuthType       = 12
	loginUsernameLength = 36
	loginPasswordLength = 40
	loginUsername       = 48
	loginPassword       = 56
	loginSize           = 64
)

// The flags of InformationSpecified. Fields without their flag get Windows' defaults.
const (
	loginHasUsername = 0x20 // ISCSI_LOGIN_OPTIONS_USERNAME
	loginHasPassword = 0x40 // ISCSI_LOGIN_OPTIONS_PASSWORD
	loginHasAuthType = 0x80 // ISCSI_LOGIN_OPTIONS_AUTH_TYPE
)

// Memory is a part of memory that Windows reads while it is called. It must not move.
type Memory struct {
	Address uint64
	Length  uint32
}

// LoginOptionsSize is how large an ISCSI_LOGIN_OPTIONS is. Its memory must be aligned to 8
// bytes: it holds pointers.
const LoginOptionsSize = loginSize

// EncodeLoginOptions writes an ISCSI_LOGIN_OPTIONS. User and secret are bytes, not characters,
// and have no NUL at the end. They are used with CHAP only. Without a user Windows sends the
// name of the initiator.
func EncodeLoginOptions(b []byte, auth win.AuthType, user, secret Memory) error {
	if err := need(b, loginSize, "ISCSI_LOGIN_OPTIONS"); err != nil {
		return err
	}
	clear(b[:loginSize])
	specified := uint32(loginHasAuthType)
	if auth != win.NoAuth {
		specified |= loginHasPassword
		binary.LittleEndian.PutUint32(b[loginPasswordLength:], secret.Length)
		binary.LittleEndian.PutUint64(b[loginPassword:], secret.Address)
		if user.Length > 0 {
			specified |= loginHasUsername
			binary.LittleEndian.PutUint32(b[loginUsernameLength:], user.Length)
			binary.LittleEndian.PutUint64(b[loginUsername:], user.Address)
		}
	}
	const version = 0 // ISCSI_LOGIN_OPTIONS_VERSION
	binary.LittleEndian.PutUint32(b[loginVersion:], version)
	binary.LittleEndian.PutUint32(b[loginSpecified:], specified)
	binary.LittleEndian.PutUint32(b[loginAuthType:], uint32(auth))
	return nil
}

// PERSISTENT_ISCSI_LOGIN_INFOW
//
//	typedef struct {
//	  WCHAR                  TargetName[MAX_ISCSI_NAME_LEN + 1];
//	  BOOLEAN                IsInformationalSession;
//	  WCHAR                  InitiatorInstance[MAX_ISCSI_HBANAME_LEN];
//	  ULONG                  InitiatorPortNumber;
//	  ISCSI_TARGET_PORTALW   TargetPortal;
//	  ISCSI_SECURITY_FLAGS   SecurityFlags;
//	  PISCSI_TARGET_MAPPINGW Mappings;
//	  ISCSI_LOGIN_OPTIONS    LoginOptions;
//	} PERSISTENT_ISCSI_LOGIN_INFOW;
//
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-persistent_iscsi_login_infow
const (
	persistentTarget        = 0
	persistentInitiator     = 450
	persistentInitiatorPort = 964
	persistentPortal        = 968
	persistentSize          = 2080
)

// DecodePersistentLogins reads an array of count PERSISTENT_ISCSI_LOGIN_INFOWs. It does not
// follow the pointers to mappings and credentials.
func DecodePersistentLogins(b []byte, count uint32) ([]win.PersistentLogin, error) {
	return decodeArray(b, count, persistentSize, "PERSISTENT_ISCSI_LOGIN_INFOW", func(b []byte) win.PersistentLogin {
		return win.PersistentLogin{
			Target:            nameAt(b, persistentTarget, maxISCSIName),
			InitiatorInstance: nameAt(b, persistentInitiator, maxHBAName),
			InitiatorPort:     uint32At(b, persistentInitiatorPort),
			Portal:            decodeTargetPortal(b[persistentPortal : persistentPortal+portalSize]),
		}
	})
}
