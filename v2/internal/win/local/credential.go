package local

import (
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// escapeUser keeps the colon that ends a user name apart from those in it.
var escapeUser = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// credential is a user with a password in the form that WMI takes, one text: the user name with
// backslashes and colons escaped, a colon, and the password as it is. PowerShell writes a
// PSCredential in the same way. The caller wipes it.
// https://github.com/PowerShell/PowerShell/blob/master/src/Microsoft.Management.Infrastructure.CimCmdlets/Utils.cs
func credential(user string, password win.Secret) []byte {
	escaped := escapeUser.Replace(user)
	// In one piece, so that no copy of the password is left behind by growing.
	return slices.Concat([]byte(escaped), []byte{':'}, password.Bytes())
}
