// A driver that runs as a HostProcess container and links the library.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fs "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// mounter is what a driver has of us.
type mounter struct {
	disk       disk.Interface
	filesystem fs.Interface
	iscsi      iscsi.Interface
	smb        smb.Interface
	system     system.Interface
	volume     volume.Interface
}

func newMounter() (m mounter, err error) {
	if m.disk, err = disk.New(diskapi.New()); err != nil {
		return m, err
	}
	if m.filesystem, err = fs.New(fsapi.New()); err != nil {
		return m, err
	}
	if m.iscsi, err = iscsi.New(iscsiapi.New()); err != nil {
		return m, err
	}
	if m.smb, err = smb.New(smbapi.New(), m.filesystem); err != nil {
		return m, err
	}
	if m.system, err = system.New(systemapi.New()); err != nil {
		return m, err
	}
	m.volume, err = volume.New(volumeapi.New())
	return m, err
}

func main() {
	m, err := newMounter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	response, err := m.filesystem.PathExists(context.Background(), &fs.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	fmt.Println(response, err)
}
