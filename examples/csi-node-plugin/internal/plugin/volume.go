package plugin

import (
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/mounter"
)

// volume is what a handle says. It has one of the three.
type volume struct {
	disk   mounter.Disk
	remote string // \\server\share or a folder in it
	iscsi  mounter.ISCSI
}

func volumeOf(handle string) (volume, error) {
	switch kind, name, _ := strings.Cut(handle, "/"); {
	case kind == "disk" && name != "":
		return volume{disk: mounter.Disk{Serial: name}}, nil
	case kind == "smb" && strings.Count(strings.Trim(name, "/"), "/") >= 1:
		return volume{remote: `\\` + strings.ReplaceAll(strings.Trim(name, "/"), "/", `\`)}, nil
	case kind == "iscsi":
		portals, name, _ := strings.Cut(name, "/")
		target, number, _ := strings.Cut(name, "/")
		if lun, err := strconv.ParseUint(number, 10, 8); err == nil && target != "" {
			return volume{iscsi: mounter.ISCSI{Portals: strings.Split(portals, ","), Target: target, LUN: uint16(lun)}}, nil
		}
	}
	return volume{}, status.Errorf(codes.NotFound, "volume %s not found: handles are disk/SERIAL, smb/SERVER/SHARE and iscsi/PORTAL/TARGET/LUN", handle)
}

// source says what the volume is on. To stage a share or a disk of a target takes the secrets username and password, and
// for a share optionally domain. Without a username the server must admit guests.
func (v volume) source(secrets map[string]string) mounter.Source {
	user := secrets["username"]
	switch {
	case v.iscsi.Target != "":
		v.iscsi.CHAP = mounter.CHAP{Username: user, Secret: secrets["password"]}
		return v.iscsi
	case v.remote == "":
		return v.disk
	}
	if domain := secrets["domain"]; domain != "" && user != "" {
		user = domain + `\` + user
	}
	return mounter.SMB{Remote: v.remote, Username: user, Password: secrets["password"]}
}

var errBlock = status.Error(codes.InvalidArgument, "raw block volumes are not supported on Windows; use volumeMode: Filesystem")

// checkCapability refuses what no volume on Windows can do.
func checkCapability(capability *csi.VolumeCapability) error {
	switch {
	case capability == nil:
		return status.Error(codes.InvalidArgument, "the volume capability is missing")
	case capability.GetBlock() != nil:
		return errBlock
	case capability.GetMount() == nil:
		return status.Error(codes.InvalidArgument, "the volume capability has no access type")
	}
	return nil
}

// accepts refuses access modes that this kind of volume cannot have. The mounter knows file systems and mount options.
func (v volume) accepts(capability *csi.VolumeCapability) error {
	mode := capability.GetAccessMode().GetMode()
	switch {
	case v.remote == "" && mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:
		// Two nodes at once would destroy NTFS.
		return status.Errorf(codes.InvalidArgument, "access mode %v is not supported for disks; use ReadWriteOnce", mode)
	case v.remote == "":
		return nil
	}
	switch mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return nil
	default:
		return status.Errorf(codes.InvalidArgument,
			"access mode %v cannot be enforced for shares; use ReadWriteOnce or ReadWriteMany", mode)
	}
}
