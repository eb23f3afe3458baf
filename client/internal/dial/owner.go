package dial

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// ErrUntrustedOwner is what every OwnerError is.
var ErrUntrustedOwner = errors.New("untrusted owner")

// OwnerError reports an endpoint that belongs to an account that the client does not trust.
type OwnerError struct {
	Object string // what belongs to the account: the pipe, the socket, its directory or the server
	Owner  string // as WithTrustedOwners takes it: a SID on Windows, a user id on other systems
	Name   string // of the owner, or empty
}

func (e *OwnerError) Error() string {
	owner := e.Owner
	if e.Name != "" {
		owner = fmt.Sprintf("%s (%s)", e.Name, e.Owner)
	}
	return fmt.Sprintf("%s belongs to %s", e.Object, owner)
}

// Is makes the error an ErrUntrustedOwner and an fs.ErrPermission.
func (e *OwnerError) Is(target error) bool {
	return target == ErrUntrustedOwner || target == fs.ErrPermission
}

// checkOwner compares an owner with those that the caller trusts and those of this system.
func checkOwner(object, owner string, nameOf func(string) string, trusted ...[]string) error {
	for _, list := range trusted {
		if slices.Contains(list, owner) {
			return nil
		}
	}
	return &OwnerError{Object: object, Owner: owner, Name: nameOf(owner)}
}
