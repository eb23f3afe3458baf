package local

import (
	"context"
	"fmt"
	"math"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
)

// globalMappings need WMI, because Windows documents no function for them.
// https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbglobalmapping
var globalMappings = cim.Object{Namespace: cim.SMB, Class: "MSFT_SmbGlobalMapping"}

func globalMapping(remote string) cim.Object {
	mapping := globalMappings
	mapping.Property, mapping.Value = "RemotePath", remote
	return mapping
}

// SMBMapping asks for a share by its name, which WMI compares without case, at least in Win32_LogicalDisk (Wine's
// dlls/wbemprox/tests/query.c). A share can have
// several mappings, of which those with a drive letter are not ours; the best will do.
func (machine) SMBMapping(ctx context.Context, remote string) (win.SMBMapping, error) {
	found, err := smbMappings(ctx, globalMapping(remote))
	if err != nil {
		return win.SMBMapping{}, err
	}
	return bestMapping(found)
}

func (machine) SMBMappings(ctx context.Context) ([]win.SMBMapping, error) {
	return smbMappings(ctx, globalMappings)
}

func smbMappings(ctx context.Context, object cim.Object) ([]win.SMBMapping, error) {
	const remotePath, status, privacy = "RemotePath", "Status", "RequirePrivacy"
	instances, err := cim.Query(ctx, object, remotePath, status, privacy)
	if err != nil {
		return nil, smbError(0, err)
	}
	mappings := make([]win.SMBMapping, 0, len(instances))
	for _, instance := range instances {
		remote, isText := instance[remotePath].(string)
		number, isNumber := instance[status].(int64)
		if !isText || !isNumber {
			return nil, fmt.Errorf("%w: a mapping of %v has the status %v", errInvalidData, instance[remotePath], instance[status])
		}
		private, known := instance[privacy].(bool)
		mappings = append(mappings, win.SMBMapping{Remote: remote, Status: win.SMBStatus(number & math.MaxUint32), Plain: known && !private, Private: private})
	}
	return mappings, nil
}

// CreateSMBMapping leaves all other parameters to Windows. Persistent is given too: users find mappings
// after a restart that do not work (csi-driver-smb#219, kubernetes#60624), so it seems to be the default.
// https://learn.microsoft.com/powershell/module/smbshare/new-smbglobalmapping
func (machine) CreateSMBMapping(ctx context.Context, request win.SMBMappingRequest) error {
	parameters := map[string]any{
		"RemotePath": request.Remote, "RequirePrivacy": request.RequirePrivacy, "Persistent": cim.Optional(request.Persistent),
	}
	if request.User != "" {
		credential := credential(request.User, request.Password)
		parameters["Credential"] = string(credential) // all that WMI takes; the copy cannot be wiped
		clear(credential)
	}
	return smbError(cim.Call(ctx, globalMappings, "Create", parameters))
}

// RemoveSMBMapping leaves mappings with a drive letter alone: an administrator has made them.
func (machine) RemoveSMBMapping(ctx context.Context, remote string, force bool) error {
	mapping := globalMapping(remote)
	mapping.Empty = "LocalPath"
	return smbError(cim.Call(ctx, mapping, "Remove", map[string]any{"Force": force}))
}
