package wmi

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// SMB returns the classes of a machine that connect it to shares, in their namespace. The
// provider is taken to throw its codes; it is also seen to return them.
func SMB(machine win.Machine) Namespaces {
	return Namespaces{
		`root\Microsoft\Windows\SMB`: {
			"MSFT_SmbGlobalMapping": {
				Instances: func(ctx context.Context) ([]Values, error) {
					mappings, err := machine.SMBMappings(ctx)
					if err != nil {
						return nil, err
					}
					instances := make([]Values, len(mappings))
					for i, mapping := range mappings {
						instances[i] = Values{"RemotePath": mapping.Remote, "Status": int32(mapping.Status)}
					}
					return instances, nil
				},
				Methods: map[string]Method{
					"Create": {
						In: []string{
							"LocalPath", "RemotePath", "Credential", "Persistent", "RequireIntegrity", "RequirePrivacy",
							"FullAccess", "DenyAccess", "UseWriteThrough",
						},
						Call: func(ctx context.Context, _, in Values) (Values, error) {
							return returnValue(machine.CreateSMBMapping(ctx, mappingRequest(in)))
						},
					},
					"Remove": {
						In: []string{"Force"},
						Call: func(ctx context.Context, self, in Values) (Values, error) {
							return returnValue(machine.RemoveSMBMapping(ctx, self["RemotePath"].(string), in["Force"] == true))
						},
					},
				},
			},
		},
	}
}

func mappingRequest(in Values) win.SMBMappingRequest {
	remote, _ := in["RemotePath"].(string)
	request := win.SMBMappingRequest{Remote: remote, RequirePrivacy: in["RequirePrivacy"] == true}
	request.Persistent = in["Persistent"] != false // Windows is taken to keep mappings unless asked not to
	if credential, ok := in["Credential"].(string); ok {
		user, password := splitCredential(credential)
		request.User, request.Password = user, win.NewSecret(password)
	}
	return request
}

// splitCredential takes a name and a password apart: the first colon stands between them
// that has no backslash before it. In the name a backslash makes the next character an
// ordinary one.
func splitCredential(credential string) (user, password string) {
	for i := 0; i < len(credential); i++ {
		switch credential[i] {
		case '\\':
			i++
		case ':':
			return unescape.ReplaceAllString(credential[:i], "$1"), credential[i+1:]
		}
	}
	return credential, ""
}
