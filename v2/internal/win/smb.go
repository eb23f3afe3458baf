package win

import "context"

// SMB is the part of a machine that connects it to shares. A global mapping holds the
// credentials for one share, for everything that runs on the machine, containers included.
//
// Remote paths are those of a share, \\server\share in lower case, and identify mappings: a
// query for one costs the same however many there are.
// https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbglobalmapping
//
// If the server does not answer, these calls hang for up to a minute and then fail with
// ERROR_BAD_NETPATH (53) or another network error.
type SMB interface {
	// SMBMapping returns the mapping of a share. It fails with ERROR_FILE_NOT_FOUND (2) if
	// there is none.
	SMBMapping(ctx context.Context, remote string) (SMBMapping, error)

	// SMBMappings lists all mappings, in no particular order.
	SMBMappings(ctx context.Context) ([]SMBMapping, error)

	// CreateSMBMapping connects to a share: MSFT_SmbGlobalMapping.Create. It fails with
	// ERROR_ALREADY_ASSIGNED (85) or ERROR_DEVICE_ALREADY_REMEMBERED (1202) if the share has a
	// mapping, and with ERROR_SESSION_CREDENTIAL_CONFLICT (1219) if a connection to the server
	// has other credentials, or Windows has not kept them. ERROR_NOT_ENOUGH_MEMORY (8) and its like
	// mean that there are too many mappings.
	CreateSMBMapping(ctx context.Context, request SMBMappingRequest) error

	// RemoveSMBMapping removes a mapping: MSFT_SmbGlobalMapping.Remove. With force also
	// one that is in use. It fails with ERROR_FILE_NOT_FOUND (2) if there is none. Mappings
	// with a drive letter are not ours, and stay.
	RemoveSMBMapping(ctx context.Context, remote string, force bool) error
}

// SMBMapping is a global mapping.
type SMBMapping struct {
	Remote string // as it was given to Create
	Status SMBStatus
	// Plain means that Windows says it does not require encryption, and Private that it does. Both
	// are false if it says nothing.
	Plain, Private bool
}

// SMBMappingRequest is what a mapping is made of.
type SMBMappingRequest struct {
	Remote   string
	User     string // DOMAIN\user, user@domain or user; empty means the machine itself, or a guest
	Password Secret // is not used after the call has ended, nor without a user
	// RequirePrivacy refuses servers that do not encrypt.
	RequirePrivacy bool
	// Persistent lets Windows make the mapping again after a restart, without the credentials: it
	// does not work then. A build that offers no choice does so anyway.
	Persistent bool
}

// SMBStatus is what Windows last knew of the connection behind a mapping.
// https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbmapping
type SMBStatus uint32

// The states.
const (
	SMBOK           SMBStatus = 0
	SMBPaused       SMBStatus = 1
	SMBDisconnected SMBStatus = 2
	SMBNetworkError SMBStatus = 3
	SMBConnecting   SMBStatus = 4
	SMBReconnecting SMBStatus = 5
	SMBUnavailable  SMBStatus = 6
)
