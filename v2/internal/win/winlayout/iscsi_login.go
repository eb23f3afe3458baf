package winlayout

import (
	"encoding/binary"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// loginOptions is ISCSI_LOGIN_OPTIONS. Username and Password are pointers.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_login_options
type loginOptions struct {
	Version                                                  uint32
	InformationSpecified, LoginFlags, AuthType               uint32
	HeaderDigest, DataDigest                                 uint32
	MaximumConnections, DefaultTime2Wait, DefaultTime2Retain uint32
	UsernameLength, PasswordLength                           uint32
	_                                                        uint32
	Username, Password                                       uint64
}

// The flags of InformationSpecified. Fields without their flag get Windows' defaults.
const (
	loginHasUsername = 0x20 // ISCSI_LOGIN_OPTIONS_USERNAME
	loginHasPassword = 0x40 // ISCSI_LOGIN_OPTIONS_PASSWORD
	loginHasAuthType = 0x80 // ISCSI_LOGIN_OPTIONS_AUTH_TYPE
)

// loginMultipath is ISCSI_LOGIN_FLAG_MULTIPATH_ENABLED of LoginFlags, which need no flag to count.
const loginMultipath = 0x2

// Memory is a part of memory that Windows reads while it is called. It must not move.
type Memory struct {
	Address uint64
	Length  uint32
}

// LoginOptionsSize is how large an ISCSI_LOGIN_OPTIONS is. Its memory must be aligned to 8
// bytes: it holds pointers.
var LoginOptionsSize = binary.Size(loginOptions{})

// EncodeLoginOptions writes an ISCSI_LOGIN_OPTIONS. User and secret are bytes, not characters,
// and have no NUL at the end. They are used with CHAP only. Without a user Windows sends the
// name of the initiator.
func EncodeLoginOptions(b []byte, auth win.AuthType, multipath bool, user, secret Memory) error {
	options := loginOptions{InformationSpecified: loginHasAuthType, AuthType: uint32(auth)} // Version is ISCSI_LOGIN_OPTIONS_VERSION, 0
	if multipath {
		options.LoginFlags = loginMultipath
	}
	if auth != win.NoAuth {
		options.InformationSpecified |= loginHasPassword
		options.PasswordLength, options.Password = secret.Length, secret.Address
		if user.Length > 0 {
			options.InformationSpecified |= loginHasUsername
			options.UsernameLength, options.Username = user.Length, user.Address
		}
	}
	if _, err := binary.Encode(b, binary.LittleEndian, options); err != nil {
		return fmt.Errorf("ISCSI_LOGIN_OPTIONS of %d bytes: %w", len(b), ErrTruncated)
	}
	return nil
}

// persistentLogin is PERSISTENT_ISCSI_LOGIN_INFOW. Mappings is a pointer.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-persistent_iscsi_login_infow
type persistentLogin struct {
	TargetName             [nameUnits * maxISCSIName]byte
	IsInformationalSession bool
	_                      byte
	InitiatorInstance      [nameUnits * maxHBAName]byte
	_                      uint16
	InitiatorPortNumber    uint32
	TargetPortal           targetPortal
	_                      [6]byte
	SecurityFlags          uint64
	Mappings               uint64
	LoginOptions           loginOptions
}

// DecodePersistentLogins reads an array of count PERSISTENT_ISCSI_LOGIN_INFOWs. It does not
// follow the pointers to mappings and credentials.
func DecodePersistentLogins(b []byte, count uint32) ([]win.PersistentLogin, error) {
	return decodeArray(b, count, "PERSISTENT_ISCSI_LOGIN_INFOW", func(l persistentLogin) win.PersistentLogin {
		return win.PersistentLogin{
			Target:            name(l.TargetName[:]),
			InitiatorInstance: name(l.InitiatorInstance[:]),
			InitiatorPort:     l.InitiatorPortNumber,
			Portal:            l.TargetPortal.value(),
		}
	})
}
