package smb

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Limits of Windows, in UTF-16 units: CREDUI_MAX_USERNAME_LENGTH, and what fits into
// CRED_MAX_CREDENTIAL_BLOB_SIZE.
// https://learn.microsoft.com/windows/win32/api/wincred/ns-wincred-credentialw
const (
	maxUser     = 513
	maxPassword = 1280
)

// checkAccount refuses what cannot be a user name or password, and leaves the rest to Windows
// and the server. Its errors never contain the password.
func checkAccount(op, user, password string) error {
	switch {
	case !isText(user, maxUser):
		return winerr.New(winerr.Invalid, op, "", "the user name is longer than %d characters, or not valid UTF-8", maxUser)
	case strings.ContainsFunc(user, unicode.IsControl):
		return winerr.New(winerr.Invalid, op, "", "the user name %.100q has a control character", user)
	case !isText(password, maxPassword):
		return winerr.New(winerr.Invalid, op, "", "the password is longer than %d characters, or not valid UTF-8", maxPassword)
	case strings.Contains(password, "\x00"):
		return winerr.New(winerr.Invalid, op, "", "the password contains NUL, where Windows would cut it off")
	}
	return nil
}

func isText(s string, longest int) bool {
	const bytesPerUnit = 3 // at most
	return len(s) <= bytesPerUnit*longest && utf8.ValidString(s) && winpath.UTF16Len(s) <= longest
}
