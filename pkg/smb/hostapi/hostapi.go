// Package api says what package smb needs from the machine below it, and
// provides that machine.
//
// Drivers call package smb and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as smbapi.
//
// It compiles on every system. The host that New returns is safe for concurrent
// use.
package api

// HostAPI is a machine with an SMB client. Package smb calls the methods that
// deal in mappings with \\server\share in lower case.
//
// A host may also have a method WithContext(context.Context) HostAPI; package smb
// then calls the host it returns, bound to the context of the request.
type HostAPI interface {
	// IsSMBMapped tells whether the share has a mapping whose status is good.
	IsSMBMapped(remotePath string) (bool, error)

	// NewSMBLink makes a link at localPath to a path on a share.
	NewSMBLink(remotePath, localPath string) error

	// NewSMBGlobalMapping connects the machine to a share. An empty user name
	// means guest.
	NewSMBGlobalMapping(remotePath, username, password string) error

	// RemoveSMBGlobalMapping disconnects the machine from a share.
	RemoveSMBGlobalMapping(remotePath string) error
}
