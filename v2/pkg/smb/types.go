package smb

// NewSMBGlobalMappingRequest names a share and how to connect to it.
type NewSMBGlobalMappingRequest struct {
	// RemotePath is \\server\share, or a path below it. The mapping is made
	// for the share.
	RemotePath string
	// LocalPath is the absolute path of a link to make to RemotePath. Empty
	// means no link.
	LocalPath string
	// Username is the account, as DOMAIN\user or user@domain if it is in a domain. If it is
	// empty, the password is ignored and Windows logs on as the machine: in a domain with the
	// computer account, otherwise as a guest.
	Username string
	// Password is the account's password. It can contain any character except NUL, and is
	// never logged.
	Password string
	// Privacy says whether the server must encrypt for this mapping.
	Privacy Privacy
	// RefuseOtherUser is the option RefuseOtherUser for this request.
	RefuseOtherUser bool
}

// Privacy says whether a server must encrypt what it sends and receives. The host must be one of
// package hostapi or winsim for a value other than PrivacyDefault.
type Privacy int

// The values of Privacy.
const (
	PrivacyDefault     Privacy = iota // as the option RequirePrivacy says
	PrivacyRequired                   // servers that cannot encrypt are refused
	PrivacyNotRequired                // servers need not encrypt
)

// NewSMBGlobalMappingResponse is empty: the share is mapped, and the link exists if the request
// has a local path.
type NewSMBGlobalMappingResponse struct{}

// RemoveSMBGlobalMappingRequest names the share to disconnect.
type RemoveSMBGlobalMappingRequest struct {
	// RemotePath is \\server\share, or a path below it.
	RemotePath string
	// ExceptLink is the path of a link that does not keep the mapping, because the caller removes it next.
	// A caller that removes its link last can repeat both steps until they are done. The host must be one
	// of package hostapi or winsim.
	ExceptLink string
}

// RemoveSMBGlobalMappingResponse is empty: the mapping is gone, or a link uses it.
type RemoveSMBGlobalMappingResponse struct{}
