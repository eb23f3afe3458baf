package filesystem_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver publishes a staged volume to a pod and takes it back. Here it does so on an
// emulated node, which works on any system; on a real one the host is fsapi.New().
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
	ctx := context.Background()
	const stage, pod = `C:\var\lib\kubelet\plugins\stage`, `C:\var\lib\kubelet\pods\1\volumes`
	for _, dir := range []string{stage, pod} {
		if _, err := files.Mkdir(ctx, &filesystem.MkdirRequest{Path: dir}); err != nil {
			fmt.Println(err)
			return
		}
	}
	publish := &filesystem.CreateSymlinkRequest{SourcePath: stage, TargetPath: pod + `\mount`}
	for range 2 { // kubelet repeats its calls
		if _, err := files.CreateSymlink(ctx, publish); err != nil {
			fmt.Println(err)
			return
		}
	}
	answer, err := files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: pod + `\mount`})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("published:", answer.IsSymlink)

	if _, err := files.Rmdir(ctx, &filesystem.RmdirRequest{Path: pod + `\mount`, Force: true}); err != nil {
		fmt.Println(err)
		return
	}
	_, err = files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: pod + `\mount`})
	fmt.Println("gone:", errors.Is(err, fs.ErrNotExist))
	// Output:
	// published: true
	// gone: true
}

// The host of this machine can be asked on any system; what it cannot do, it says.
func ExampleNew() {
	files, err := filesystem.New(fsapi.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = files.PathExists(context.Background(), &filesystem.PathExistsRequest{Path: `C:\Windows`})
	if errors.Is(err, errors.ErrUnsupported) {
		return // not a Windows node
	}
}

// A driver that passes on paths from pods can keep its calls to kubelet's directory. Links
// there do not lead them out of it.
func ExampleWorkingDirs() {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := node.Symlink(`C:\var\lib\kubelet\pods\evil`, `C:\Windows`); err != nil {
		fmt.Println(err)
		return
	}
	files, err := filesystem.New(node.Filesystem(), filesystem.WorkingDirs(`C:\var\lib\kubelet`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{`C:\Windows\System32`, `C:\var\lib\kubelet\pods\evil\System32`} {
		_, err := files.Rmdir(context.Background(), &filesystem.RmdirRequest{Path: path, Force: true})
		fmt.Println(errors.Is(err, fs.ErrPermission))
	}
	// Output:
	// true
	// true
}

// Errors say what was wrong to people, and of what kind it was to programs.
func ExampleValidatePathWindows() {
	err := filesystem.ValidatePathWindows(`C:\var\lib\..\kubelet`)
	fmt.Println(err)
	fmt.Println(errors.Is(err, fs.ErrInvalid))
	// Output:
	// check: path "C:\var\lib\..\kubelet": component ".." uses '.' or '..'; give the path without relative parts
	// true
}
