package winsim_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// must ends an example that cannot go on. Tests use t.Fatal.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A node and the library on it are all that the test of a driver needs. Paths, errors and code
// are those of a Windows node.
func Example() {
	ctx := context.Background()

	node, err := winsim.New(winsim.Default())
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)
	_, err = files.Mkdir(ctx, &filesystem.MkdirRequest{Path: `C:\var\lib\kubelet\pods\1`})
	must(err)

	_, err = files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{
		SourcePath: `C:\var\lib\kubelet\plugins`,
		TargetPath: `C:\var\lib\kubelet\pods\1\volume`,
	})
	must(err)
	fmt.Print(node.Tree(`C:\var\lib\kubelet`))
	// Output:
	// C:\var\lib\kubelet
	// C:\var\lib\kubelet\plugins
	// C:\var\lib\kubelet\pods
	// C:\var\lib\kubelet\pods\1
	// C:\var\lib\kubelet\pods\1\volume -> C:\var\lib\kubelet\plugins
}

// A test arranges the node directly. Such changes do not count as calls, and faults do not
// affect them.
func ExampleNode_MountFolder() {
	ctx := context.Background()
	const volume = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`
	model := winsim.Default()
	model.Volumes = append(model.Volumes, winsim.Volume{ID: volume})
	node, err := winsim.New(model)
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)

	const stage = `C:\var\lib\kubelet\plugins\stage`
	must(node.MountFolder(stage, volume))
	must(node.WriteFile(stage+`\data`, "precious"))
	isMount := func() bool {
		answer, err := files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: stage})
		must(err)
		return answer.IsSymlink
	}
	fmt.Println("mounted:", isMount())

	// The disk is detached while it is mounted, as happens when a node is drained badly.
	must(node.SetVolumeState(volume, winsim.Gone))
	fmt.Println("mounted after the disk was lost:", isMount())

	// Cleaning up works all the same, and the volume keeps its files.
	_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: stage, Force: true})
	must(err)
	must(node.SetVolumeState(volume, winsim.Healthy))
	must(node.MountFolder(stage, volume))
	content, err := node.ReadFile(stage + `\data`)
	must(err)
	fmt.Println("after mounting again:", content)
	// Output:
	// mounted: true
	// mounted after the disk was lost: false
	// after mounting again: precious
}

// Faults test how a driver handles failures of Windows. Calls lists the names of calls.
func ExampleNode_Inject() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)
	mkdir := func(name string) error {
		_, err := files.Mkdir(ctx, &filesystem.MkdirRequest{Path: `C:\var\lib\kubelet\pods\` + name})
		return err
	}

	fault, err := node.Inject(winsim.Fault{
		Call:   "CreateDirectory",
		Object: `*\pods\*`,
		Nth:    2, // the first call goes well
		Times:  1, // and so do those after the second
		Error:  5, // ERROR_ACCESS_DENIED
	})
	must(err)
	fmt.Println(mkdir("1"))
	err = mkdir("2")
	fmt.Println(err)
	fmt.Println("for programs:", errors.Is(err, fs.ErrPermission))
	fmt.Println(mkdir("3"))
	fmt.Println("hits:", fault.Hits())
	// Output:
	// <nil>
	// create directory C:\var\lib\kubelet\pods\2: access is denied (Windows error 5)
	// for programs: true
	// <nil>
	// hits: 1
}

// A hook changes the node in the middle of an operation, at a point that timing cannot hit.
func ExampleNode_Inject_hook() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)
	const dir = `C:\var\lib\kubelet\pods\1`
	must(node.WriteFile(dir+`\volume\file`, "data"))

	// Another process writes into the directory just before it is removed.
	_, err = node.Inject(winsim.Fault{Call: "Remove", Object: dir, Times: 1, Do: func(n *winsim.Node) {
		must(n.WriteFile(dir+`\late.log`, "text"))
	}})
	must(err)
	_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: dir, Force: true})
	fmt.Println(err, node.Exists(dir))
	// Output: <nil> false
}

// A virus scanner keeps a file open. The library retries for a while before it reports an
// error; with the node's clock the test does not wait.
func ExampleNode_Hold() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)
	const dir = `C:\var\lib\kubelet\pods\1`
	must(node.WriteFile(dir+`\file`, "data"))
	remove := func() error {
		_, err := files.Rmdir(ctx, &filesystem.RmdirRequest{Path: dir, Force: true})
		return err
	}

	release, err := node.Hold(dir + `\file`)
	must(err)
	fmt.Println(remove())
	release()
	fmt.Println(remove())
	// Output:
	// remove C:\var\lib\kubelet\pods\1\file: another process has it open (Windows error 32)
	// <nil>
}

// A call to the node is about one system call on Windows, so the number of calls is the cost of
// an operation.
func ExampleNode_Calls() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)
	must(node.Symlink(`C:\link`, `C:\var`))

	node.ResetCalls()
	_, err = files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: `C:\link`})
	must(err)
	fmt.Println(node.Calls())
	// Output: map[FileInfo:1 ReparsePoint:1]
}

// A model in YAML, as for csi-proxy-sim -model. Errors name the line and field.
func ExampleLoadModel() {
	const yaml = `
volumes:
  - {id: 0c51a9e0-0000-0000-0000-100000000000, letter: C}
  - {id: 11111111-2222-3333-4444-555555555555, state: not-ready}
files:
  - path: C:\var\lib\kubelet\pods
  - {path: C:\Windows\win.ini, content: "[fonts]"}
  - {path: C:\var\lib\kubelet\.keep, emptyFile: true}
  - {path: C:\var\lib\kubelet\link, symlink: pods}
  - {path: C:\var\lib\kubelet\mount, volume: 11111111-2222-3333-4444-555555555555}
`
	model, err := winsim.LoadModel(strings.NewReader(yaml), "node.yaml")
	must(err)
	node, err := winsim.New(model)
	must(err)
	fmt.Print(node.Tree(`C:\`))

	_, err = winsim.LoadModel(strings.NewReader("files:\n  - path: C:/var\n"), "wrong.yaml")
	fmt.Println(err)
	// Output:
	// C:\
	// C:\var
	// C:\var\lib
	// C:\var\lib\kubelet
	// C:\var\lib\kubelet\.keep ""
	// C:\var\lib\kubelet\link -> pods
	// C:\var\lib\kubelet\mount => \\?\Volume{11111111-2222-3333-4444-555555555555}\
	// C:\var\lib\kubelet\pods
	// C:\Windows
	// C:\Windows\win.ini "[fonts]"
	// wrong.yaml: line 2: files[0].path: path "C:/var" is not an absolute Windows path (it must start with a drive letter as in C:\, with backslashes only)
}

// Faults in YAML, as for csi-proxy-sim -faults.
func ExampleLoadFaults() {
	const yaml = `
faults:
  - {call: Remove, object: 'C:\var\lib\kubelet\*', times: 2, error: 32}
  - {chance: 0.1, delay: 20ms}
`
	faults, err := winsim.LoadFaults(strings.NewReader(yaml), "faults.yaml")
	must(err)
	node, err := winsim.New(winsim.Default())
	must(err)
	for _, fault := range faults {
		_, err := node.Inject(fault)
		must(err)
		fmt.Printf("call %q: error %d, delay %s\n", fault.Call, fault.Error, fault.Delay)
	}
	// Output:
	// call "Remove": error 32, delay 0s
	// call "": error 0, delay 20ms
}

// An attacker replaces a directory by a link just after a check. A process that has the
// directory open stays in it and does not follow the link.
func ExampleNode_Swap() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)
	const dir, trap = `C:\var\lib\kubelet\pods\1`, `C:\var\lib\kubelet\pods\trap`
	must(node.WriteFile(dir+`\volume\file`, "data"))
	must(node.WriteFile(`C:\precious\file`, "precious"))
	must(node.Junction(trap, `C:\precious`))

	// Before the first entry is removed, the directory is a junction, and the trap is the
	// directory.
	swapped, err := node.Inject(winsim.Fault{Call: "Remove", Times: 1, Do: func(n *winsim.Node) {
		must(n.Swap(dir, trap))
	}})
	must(err)
	_, err = files.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: dir})
	fmt.Println(err, swapped.Hits())
	fmt.Print(node.Tree(trap))
	fmt.Print(node.Tree(`C:\precious`))
	// Output:
	// <nil> 1
	// C:\var\lib\kubelet\pods\trap
	// C:\precious
	// C:\precious\file "precious"
}

// Observe reports the real path of every file that the operation accesses.
func ExampleNode_Observe() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	must(err)
	files, err := filesystem.New(node.Filesystem())
	must(err)
	must(node.Mkdir(`C:\data\dir`))
	must(node.Symlink(`C:\link`, `C:\data`))
	node.Observe(func(touch winsim.Touch) {
		if touch.Changed {
			fmt.Println(touch.Call, touch.Path)
		}
	})
	_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: `C:\link\dir`})
	must(err)
	// Output: Remove C:\data\dir
}

// A name that does not fit 8.3 has a short name, too. Another one can be chosen.
func ExampleNode_Create() {
	node, err := winsim.New(winsim.Default())
	must(err)
	must(node.WriteFile(`C:\Program Files\readme.txt`, "new"))
	fmt.Println(node.ReadFile(`\\?\C:\PROGRA~1\README.TXT`))
	must(node.Create(winsim.File{Path: `C:\Program Data\readme.txt`, Short: "README.OLD", Content: "old"}))
	fmt.Println(node.ReadFile(`\\?\C:\PROGRA~2\readme.old`))
	// Output:
	// new <nil>
	// old <nil>
}
