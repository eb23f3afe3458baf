package smb

// NewSMBGlobalMappingRequest names a share and how to connect to it.
type NewSMBGlobalMappingRequest struct {
	// RemotePath is \\server\share, or a path below it. The mapping is made
	// for the share.
	RemotePath string
	// LocalPath is the absolute path of a link to make to RemotePath. Empty
	// means no link.
	LocalPath string
	// Username is the account, as DOMAIN\user or user@domain where there is a domain.
	// Empty means guest, whatever the password is.
	Username string
	// Password is the account's password, of any characters but NUL. It is never logged.
	Password string
}

// NewSMBGlobalMappingResponse is empty: the share is mapped, and linked if that
// was asked for.
type NewSMBGlobalMappingResponse struct{}

// RemoveSMBGlobalMappingRequest names the share to disconnect.
type RemoveSMBGlobalMappingRequest struct {
	// RemotePath is \\server\share, or a path below it.
	RemotePath string
}

// RemoveSMBGlobalMappingResponse is empty: the mapping is gone, or a link needs it.
type RemoveSMBGlobalMappingResponse struct{}
