package smb_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver maps a share and links a folder to it. Here it runs on an emulated node; on
// Windows the hosts are fsapi.New() and smbapi.New().
func Example() {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := filesystem.New(node.Filesystem())
	if err != nil {
		fmt.Println(err)
		return
	}
	shares, err := smb.New(node.SMB(), files, smb.WorkingDirs(`C:\var\lib\kubelet`))
	if err != nil {
		fmt.Println(err)
		return
	}
	const staged = `C:\var\lib\kubelet\plugins\staged`
	request := &smb.NewSMBGlobalMappingRequest{RemotePath: `\\files\data`, LocalPath: staged, Username: "csi", Password: "csi-Pa55"}
	for range 2 { // drivers retry
		if _, err := shares.NewSMBGlobalMapping(context.Background(), request); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := node.WriteFile(staged+`\hello.txt`, "hello"); err != nil {
		fmt.Println(err)
		return
	}
	content, err := node.ReadFile(`\\files\data\hello.txt`)
	fmt.Println(content, err)
	// Output: hello <nil>
}

// On a real node. Working directories are those that the daemon had; without them every path is allowed.
func ExampleNew() {
	const kubelet = `C:\var\lib\kubelet`
	files, err := filesystem.New(fsapi.New(), filesystem.WorkingDirs(kubelet))
	if err != nil {
		fmt.Println(err)
		return
	}
	shares, err := smb.New(smbapi.New(), files, smb.WorkingDirs(kubelet))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = shares.RemoveSMBGlobalMapping(context.Background(), &smb.RemoveSMBGlobalMappingRequest{RemotePath: `\\files\data`})
	if errors.Is(err, errors.ErrUnsupported) {
		return // not a Windows node
	}
}
