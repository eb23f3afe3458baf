package iscsi

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// What Windows accepts for CHAP. Secrets below 12 bytes need IPsec, which this API cannot ask for.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-setiscsiinitiatorchapsharedsecret
const (
	minSecret = 12
	maxSecret = 16
	maxUser   = 255 // of a value in a login (RFC 7143, section 6.1)
)

// credentials returns user and secret of a login if it uses CHAP, and nothing otherwise: a secret
// that is not needed must not reach the host. Errors never contain their values.
func credentials(op string, request *ConnectTargetRequest) (user, secret string, err error) {
	if request.AuthType == NONE {
		if strings.Contains(request.ChapUsername+request.ChapSecret, "\x00") {
			return "", "", winerr.New(winerr.Invalid, op, request.IQN, "the CHAP user name or secret contains a NUL")
		}
		return "", "", nil
	}
	switch user = request.ChapUsername; {
	case len(user) > maxUser:
		return "", "", winerr.New(winerr.Invalid, op, request.IQN, "the CHAP user name has %d bytes; at most %d are allowed", len(user), maxUser)
	case strings.ContainsFunc(user, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", "", winerr.New(winerr.Invalid, op, request.IQN, "the CHAP user name contains characters that are not printable ASCII")
	}
	return user, request.ChapSecret, checkSecret(op, request.IQN, request.ChapSecret)
}

// checkSecret checks a CHAP secret. Any byte is allowed but NUL, where Windows would end it.
func checkSecret(op, object, secret string) error {
	switch {
	case len(secret) < minSecret || len(secret) > maxSecret:
		return winerr.New(winerr.Invalid, op, object, "the CHAP secret has %d bytes; it must have %d to %d", len(secret), minSecret, maxSecret)
	case strings.Contains(secret, "\x00"):
		return winerr.New(winerr.Invalid, op, object, "the CHAP secret contains a NUL")
	}
	return nil
}
