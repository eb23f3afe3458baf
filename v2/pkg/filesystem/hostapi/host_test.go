package api_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// check fails the test if arranging the node failed.
func check(t *testing.T, errs ...error) {
	t.Helper()
	require.NoError(t, errors.Join(errs...))
}

func inject(t *testing.T, node *winsim.Node, fault winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := node.Inject(fault)
	check(t, err)
	return injection
}

// TestBudgets pins how many of the seam's calls each operation makes, without limits and
// within working directories. One stands for about one system call.
func TestBudgets(t *testing.T) {
	linkToMount := func(host fsapi.HostAPI, path string) error { return host.CreateSymlink(work+`\mount`, path) }
	linkInside := func(host fsapi.HostAPI, path string) error { return host.CreateSymlink(work+`\dir`, path) }
	var rows []calltable.Row
	for _, o := range []operation{
		asks("PathExists", work+`\dir`, fsapi.HostAPI.PathExists),
		asks("PathExists of nothing", work+`\nothing`, fsapi.HostAPI.PathExists),
		asks("PathExists of a link", work+`\inner`, fsapi.HostAPI.PathExists),
		asks("PathExists of a mounted folder", work+`\mount`, fsapi.HostAPI.PathExists),
		asks("PathExists below a link", work+`\inner\file`, fsapi.HostAPI.PathExists),
		asks("PathValid", work+`\inner`, fsapi.HostAPI.PathValid),
		asks("PathStats of a mounted folder", work+`\mount`, measure),
		asks("PathStats of a link to a mounted folder", work+`\published`, measure),
		asks("IsSymlink of a directory", work+`\dir`, fsapi.HostAPI.IsSymlink),
		asks("IsSymlink of a link", work+`\inner`, fsapi.HostAPI.IsSymlink),
		asks("IsSymlink of a mounted folder", work+`\mount`, fsapi.HostAPI.IsSymlink),
		asks("IsSymlink of a link to a mounted folder", work+`\published`, fsapi.HostAPI.IsSymlink),
		asks("IsSymlink of a dangling link", work+`\dangling`, fsapi.HostAPI.IsSymlink),
		changes("Mkdir with a parent", work+`\new`, fsapi.HostAPI.Mkdir),
		changes("Mkdir with two missing parents", work+`\a\b\c`, fsapi.HostAPI.Mkdir),
		changes("Mkdir of what exists", work+`\dir`, fsapi.HostAPI.Mkdir),
		changes("CreateSymlink", work+`\new`, linkInside),
		changes("CreateSymlink again", work+`\inner`, linkInside),
		changes("CreateSymlink to a mounted folder", work+`\new`, linkToMount),
		changes("Rmdir of nothing", work+`\nothing`, rmdir),
		changes("Rmdir of an empty directory", work+`\dir`, rmdir),
		changes("Rmdir of an empty directory with force", work+`\dir`, forceRmdir),
		changes("Rmdir of a link", work+`\link`, rmdir),
		changes("Rmdir of a link with force", work+`\link`, forceRmdir),
		changes("Rmdir of a junction", work+`\tree\junction`, forceRmdir),
		changes("Rmdir of a mounted folder", work+`\mount`, forceRmdir),
	} {
		for name, limit := range map[string]bool{o.name: false, o.name + ", within limits": true} {
			node := newNode(t)
			check(t, node.Symlink(work+`\inner`, work+`\dir`), node.Symlink(work+`\published`, work+`\mount`), node.Symlink(work+`\dangling`, work+`\nothing`))
			host := node.Filesystem()
			if limit {
				host = limited(t, host)
			}
			if _, err := o.run(host); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			rows = append(rows, calltable.Row{Operation: name, Calls: node.Calls()})
			if open := node.OpenDirectories(); open != 0 {
				t.Errorf("%s: %d directories stay open", name, open)
			}
		}
	}
	slices.SortFunc(rows, func(a, b calltable.Row) int { return strings.Compare(a.Operation, b.Operation) })
	calltable.Compare(t, rows, *update)
}

// limited is a host that may only touch C:\work.
func limited(t *testing.T, host fsapi.HostAPI) fsapi.HostAPI {
	t.Helper()
	limited, err := policy.Limit(host, []string{work})
	check(t, err)
	return limited
}

func TestRmdir_SharingViolationThatPasses(t *testing.T) {
	const path = work + `\tree\sub\file`
	t.Run("a scanner lets go", func(t *testing.T) {
		node := newNode(t)
		release, err := node.Hold(path)
		check(t, err)
		third := inject(t, node, winsim.Fault{Call: "Remove", Object: path, Nth: 3, Times: 1, Do: func(*winsim.Node) { release() }})
		if err := node.Filesystem().Rmdir(work+`\tree`, true); err != nil || third.Hits() != 1 {
			t.Errorf("%v with %d third attempts, want success at that", err, third.Hits())
		}
		if node.Exists(work + `\tree`) {
			t.Errorf("it is still there:\n%s", node.Tree(work))
		}
	})
	for _, code := range []uint32{32, 5} {
		t.Run(fmt.Sprintf("code %d twice", code), func(t *testing.T) {
			node := newNode(t)
			fault := inject(t, node, winsim.Fault{Call: "Remove", Object: path, Times: 2, Error: code})
			if err := node.Filesystem().Rmdir(work+`\tree`, true); err != nil || fault.Hits() != 2 {
				t.Errorf("%v after %d faults, want success after 2", err, fault.Hits())
			}
		})
	}
}

func TestRmdir_SharingViolationThatStays(t *testing.T) {
	for code, kind := range map[uint32]winerr.Kind{32: winerr.Busy, 5: winerr.Denied} {
		node := newNode(t)
		const path = work + `\tree\sub\file`
		fault := inject(t, node, winsim.Fault{Call: "Remove", Object: path, Error: code})
		err := node.Filesystem().Rmdir(work+`\tree`, true)
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), path) {
			t.Errorf("code %d: %v, want an error that is %q and names %s", code, err, kind, path)
		}
		if hits := fault.Hits(); hits < 5 || hits > 20 {
			t.Errorf("code %d: %d attempts, want a bounded number", code, hits)
		}
		if !node.Exists(path) {
			t.Errorf("code %d: %s is gone", code, path)
		}
	}
}

func TestRmdir_CancelledBetweenAttempts(t *testing.T) {
	node := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fault := inject(t, node, winsim.Fault{Call: "Remove", Error: 32})
	inject(t, node, winsim.Fault{Call: "Remove", Nth: 3, Do: func(*winsim.Node) { cancel() }})
	err := bind(ctx, node).Rmdir(work+`\dir`, false)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), work+`\dir`) || fault.Hits() != 3 {
		t.Errorf("%v after %d attempts, want an error that is %q after 3", err, fault.Hits(), context.Canceled)
	}
}

// TestRmdir_NeverRemovesARoot: one wrong argument must not wipe a drive.
func TestRmdir_NeverRemovesARoot(t *testing.T) {
	node := newNode(t)
	before, host := node.Tree(`C:\`), node.Filesystem()
	for name, err := range map[string]error{
		"Rmdir":              host.Rmdir(`C:\`, false),
		"Rmdir with force":   host.Rmdir(`C:\`, true),
		"RmdirContents":      host.RmdirContents(`C:\`),
		"Rmdir of no drive":  host.Rmdir(`X:\`, true),
		"contents of no one": host.RmdirContents(`X:\`),
	} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "root of a drive") {
			t.Errorf("%s: %v, want an error that is %q and says why", name, err, fs.ErrPermission)
		}
	}
	if calls := node.Calls(); len(calls) != 0 || node.Tree(`C:\`) != before {
		t.Errorf("the node was asked %v and contains\n%s", calls, node.Tree(`C:\`))
	}
}

// TestRmdir_SwappedForALink replaces a directory by a link to C:\sibling in the middle of
// the removal, as an attacker may try. The target of the link must survive.
func TestRmdir_SwappedForALink(t *testing.T) {
	swap := func(path string, kind func(n *winsim.Node, path, target string) error) func(*winsim.Node) {
		return func(n *winsim.Node) {
			check(t, n.RemoveAll(path), kind(n, path, aside))
		}
	}
	for _, c := range []struct {
		name string
		call string // before which it happens
		nth  int
		path string // what is replaced
	}{
		{"the root before it is listed", "ListDirectory", 1, work + `\tree`},
		{"a subdirectory before it is listed", "ListDirectory", 2, work + `\tree\sub`},
		{"a subdirectory before it is removed", "Remove", 2, work + `\tree\sub`},
		{"the root before it is removed", "Remove", 3, work + `\tree`},
		{"a subdirectory before its file is removed", "Remove", 1, work + `\tree\sub`},
		{"the root before a file below it is removed", "Remove", 1, work + `\tree`},
	} {
		for kind, link := range map[string]func(n *winsim.Node, path, target string) error{
			"symlink": (*winsim.Node).Symlink, "junction": (*winsim.Node).Junction,
			"mount": func(n *winsim.Node, path, _ string) error { return n.MountFolder(path, volume) },
		} {
			t.Run(c.name+" for a "+kind, func(t *testing.T) {
				node := newNode(t)
				// C:\work\tree\sub\file is the only thing in it.
				check(t, node.RemoveAll(work+`\tree`), node.WriteFile(work+`\tree\sub\file`, "data"))
				before := outside(node)
				fault := inject(t, node, winsim.Fault{Call: c.call, Nth: c.nth, Times: 1, Do: swap(c.path, link)})
				err := node.Filesystem().Rmdir(work+`\tree`, true)
				if fault.Hits() != 1 {
					t.Fatal("it was not replaced")
				}
				if got := outside(node); got != before {
					t.Errorf("the target of the link was touched:\n%s", cmp.Diff(before, got))
				}
				if err != nil || node.Exists(work+`\tree`) {
					t.Errorf("%v, and what is left is\n%s", err, node.Tree(work+`\tree`))
				}
			})
		}
	}
}

// TestRmdir_FilesKeepAppearing: files that appear while the tree goes are removed too,
// but not for ever.
func TestRmdir_FilesKeepAppearing(t *testing.T) {
	for _, c := range []struct {
		times int
		done  bool
	}{{1, true}, {4, true}, {0, false}} {
		node := newNode(t)
		fault := inject(t, node, winsim.Fault{Call: "Remove", Object: work + `\tree`, Times: c.times, Do: func(n *winsim.Node) {
			check(t, n.WriteFile(work+`\tree\late\file`, "data"))
		}})
		err := node.Filesystem().Rmdir(work+`\tree`, true)
		if c.done && (err != nil || node.Exists(work+`\tree`)) {
			t.Errorf("after %d late files: %v", c.times, err)
		}
		if !c.done && (!errors.Is(err, winerr.Busy) || winerr.CodeOf(err) != winerr.DirNotEmpty || strings.Contains(err.Error(), "force") || fault.Hits() > 10) {
			t.Errorf("with a file in each of %d rounds: %v, want an error that is %q and does not ask for force", fault.Hits(), err, winerr.Busy)
		}
	}
}

func TestRmdir_NotEmptyAsksForForce(t *testing.T) {
	node := newNode(t)
	before := node.Tree(`C:\`)
	err := node.Filesystem().Rmdir(work+`\tree`, false)
	if !errors.Is(err, winerr.InUse) || winerr.CodeOf(err) != winerr.DirNotEmpty || !strings.Contains(err.Error(), "force") {
		t.Errorf("%v, want an error that is %q and says how to remove it", err, winerr.InUse)
	}
	if got := node.Tree(`C:\`); got != before {
		t.Errorf("something was removed:\n%s", cmp.Diff(before, got))
	}
}

// bigTree fills C:\work\big with 20,000 files in 20 directories.
func bigTree(t *testing.T, node *winsim.Node) (path string, entries int) {
	t.Helper()
	path = work + `\big`
	for dir := range 20 {
		for file := range 1000 {
			check(t, node.WriteFile(fmt.Sprintf(`%s\%d\%d`, path, dir, file), ""))
		}
		entries += 1001
	}
	return path, entries + 1
}

func TestRmdir_LargeTree(t *testing.T) {
	node := newNode(t)
	path, entries := bigTree(t, node)
	if err := node.Filesystem().Rmdir(path, true); err != nil || node.Exists(path) {
		t.Fatalf("it is still there: %v", err)
	}
	if removes := node.Calls()["Remove"]; removes != entries {
		t.Errorf("%d calls to remove %d entries", removes, entries)
	}
}

// TestRmdir_FlatMemory removes 100,000 entries and looks at the heap on the way: what
// grows with the number of entries would show.
func TestRmdir_FlatMemory(t *testing.T) {
	node := newNode(t)
	path := work + `\big`
	for dir := range 100 {
		for file := range 999 {
			check(t, node.WriteFile(fmt.Sprintf(`%s\%d\%d`, path, dir, file), ""))
		}
	}
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, peak, removed := heap(), uint64(0), 0
	inject(t, node, winsim.Fault{Call: "Remove", Do: func(*winsim.Node) {
		if removed++; removed%10_000 == 0 {
			peak = max(peak, heap())
		}
	}})
	check(t, node.Filesystem().Rmdir(path, true))
	const slack = 4 << 20
	if removed != 100_001 || peak > before+slack {
		t.Errorf("%d entries were removed, and the heap grew from %d to %d bytes", removed, before, peak)
	}
}

// TestMkdir_ManyNames makes and removes a directory below many others. The calls grow with their number: one open on
// the way up, and one on the way down.
func TestMkdir_ManyNames(t *testing.T) {
	const names = 1000
	for name, host := range map[string]func(*winsim.Node) fsapi.HostAPI{
		"without limits": (*winsim.Node).Filesystem,
		"within limits":  func(n *winsim.Node) fsapi.HostAPI { return limited(t, n.Filesystem()) },
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			host, path := host(node), work+strings.Repeat(`\x`, names)
			check(t, host.Mkdir(path))
			if exists, err := host.PathExists(path); err != nil || !exists {
				t.Errorf("%v, %v", exists, err)
			}
			if calls := node.Calls(); calls["OpenDirectory"] > 2*names || calls["CreateDirectory"] > names {
				t.Errorf("%v calls", calls)
			}
			check(t, host.Rmdir(work+`\x`, true))
			if node.Exists(work+`\x`) || node.OpenDirectories() != 0 {
				t.Error("something stays behind")
			}
		})
	}
}

func TestRmdir_LargeTreeCancelled(t *testing.T) {
	node := newNode(t)
	path, _ := bigTree(t, node)
	before := outside(node)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const enough = 5000
	inject(t, node, winsim.Fault{Call: "Remove", Nth: enough, Times: 1, Do: func(*winsim.Node) { cancel() }})
	err := bind(ctx, node).Rmdir(path, true)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want an error that is %q and names %s", err, context.Canceled, path)
	}
	if removes := node.Calls()["Remove"]; removes > enough+1 {
		t.Errorf("%d calls to Remove after the caller left", removes-enough)
	}
	if !node.Exists(path) || outside(node) != before {
		t.Error("more is gone than was asked for, or time for")
	}
	if err := node.Filesystem().Rmdir(path, true); err != nil || node.Exists(path) {
		t.Errorf("repeated: %v", err)
	}
}

// TestIsSymlink_UnreadableTarget: whatever keeps the target from being opened, except for
// our own rights and luck, means that the link does not lead anywhere.
func TestIsSymlink_UnreadableTarget(t *testing.T) {
	for target, want := range map[string]bool{
		aside:                            true,
		`..\sibling`:                     true,
		aside + `\file`:                  true,
		`C:\nothing`:                     false,
		`C:\no\thing`:                    false,
		`X:\`:                            false,
		`\\server\share`:                 false,
		`link`:                           false, // a circle
		`C:\malformed|`:                  false,
		`\\?\GLOBALROOT\Device\Harddisk`: false,
	} {
		node := newNode(t)
		check(t, node.RemoveAll(work+`\link`), node.Symlink(work+`\link`, target))
		if got, err := node.Filesystem().IsSymlink(work + `\link`); err != nil || got != want {
			t.Errorf("link to %s: %v, %v, want %v", target, got, err, want)
		}
		if got, err := node.Filesystem().PathValid(work + `\link`); err != nil || got != want {
			t.Errorf("link to %s: PathValid %v, %v, want %v", target, got, err, want)
		}
	}
	for state, want := range map[winsim.VolumeState]bool{winsim.Healthy: true, winsim.Raw: false, winsim.NotReady: false, winsim.Gone: false} {
		node := newNode(t)
		check(t, node.SetVolumeState(volume, state))
		if got, err := node.Filesystem().IsSymlink(work + `\mount`); err != nil || got != want {
			t.Errorf("mounted folder of a volume in state %q: %v, %v, want %v", state, got, err, want)
		}
	}
}

// TestIsSymlink_CorruptedMount has the codes that k8s.io/mount-utils takes for a corrupted mount, which a
// test of the mounter compares with it, and others of servers that are away or refuse the account.
func TestIsSymlink_CorruptedMount(t *testing.T) {
	for _, code := range []uint32{53, 54, 59, 64, 65, 66, 67, 1219, 1326, 10064, 1225, 1240, 1272, 1312} {
		node := newNode(t)
		for _, call := range []string{"TargetInfo", "FileInfo"} {
			_, err := node.Inject(winsim.Fault{Call: call, Error: code})
			check(t, err)
		}
		for name, ask := range map[string]func(string) (bool, error){"IsSymlink": node.Filesystem().IsSymlink, "PathValid": node.Filesystem().PathValid} {
			if got, err := ask(work + `\link`); err != nil || got {
				t.Errorf("%s with %d: %v, %v, want no error and false", name, code, got, err)
			}
		}
	}
}

func TestMkdir_WhatStandsInTheWay(t *testing.T) {
	for _, c := range []struct {
		path string
		kind error
		text string
	}{
		{work + `\file`, fs.ErrExist, work + `\file: it already exists as a file`},
		{work + `\file\x`, fs.ErrExist, work + `\file is a file`},
		{work + `\file\x\y`, fs.ErrExist, work + `\file is a file`},
		{work + `\file\x\y\z`, fs.ErrExist, work + `\file is a file`},
		{work + `\dangling`, fs.ErrExist, `with Rmdir`},
		{work + `\dangling\x`, fs.ErrExist, `with Rmdir`},
		{`X:\x`, fs.ErrNotExist, `X:\x: a directory on the way to it does not exist (Windows error 3); this node has no such drive`},
	} {
		node := newNode(t)
		check(t, node.Symlink(work+`\dangling`, `C:\nothing`))
		before := node.Tree(`C:\`)
		err := node.Filesystem().Mkdir(c.path)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want an error that is %q and says %q", c.path, err, c.kind, c.text)
		}
		if errors.Is(err, fs.ErrExist) && errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v is of two kinds", c.path, err)
		}
		if got := node.Tree(`C:\`); got != before {
			t.Errorf("%s: something was made:\n%s", c.path, cmp.Diff(before, got))
		}
	}
	host := newNode(t).Filesystem()
	for _, path := range []string{`C:\`, work + `\link`, work + `\mount`, work + `\tree\junction`} {
		if err := host.Mkdir(path); err != nil {
			t.Errorf("%s is a directory, or leads to one: %v", path, err)
		}
	}
}

func TestCreateSymlink_SameTargetInOtherSpelling(t *testing.T) {
	for existing, same := range map[string]bool{
		aside:                  true,
		`c:\SIBLING`:           true,
		aside + `\`:            true,
		`\\?\` + aside:         true,
		aside + `\sub`:         false,
		`..\sibling`:           false, // the same place, but not the same link
		`\\server\sibling`:     false,
		`\\?\UNC\server\share`: false,
	} {
		node := newNode(t)
		check(t, node.Symlink(work+`\new`, existing))
		before := node.Tree(work)
		err := node.Filesystem().CreateSymlink(aside, work+`\new`)
		if same && err != nil {
			t.Errorf("over a link to %s: %v, want success", existing, err)
		}
		if !same && (!errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), work+`\new`)) {
			t.Errorf("over a link to %s: %v, want an error that is %q", existing, err, fs.ErrExist)
		}
		if got := node.Tree(work); got != before {
			t.Errorf("over a link to %s:\n%s", existing, cmp.Diff(before, got))
		}
	}
}

// TestCreateSymlink_OverOtherThings: a mounted folder or junction to the very directory is
// not the link that was asked for.
func TestCreateSymlink_OverOtherThings(t *testing.T) {
	node := newNode(t)
	check(t, node.Junction(work+`\junction`, aside))
	before := node.Tree(work)
	for _, name := range []string{"junction", "mount", "dir", "file", "tree"} {
		err := node.Filesystem().CreateSymlink(aside, work+`\`+name)
		if !errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "Rmdir") {
			t.Errorf("over the %s: %v, want an error that is %q and says what to do", name, err, fs.ErrExist)
		}
	}
	if got := node.Tree(work); got != before {
		t.Errorf("something changed:\n%s", cmp.Diff(before, got))
	}
}

// TestRmdir_DeepTree: the memory a removal needs grows with the depth of the tree, not with
// its square, as it would if every level kept its path.
func TestRmdir_DeepTree(t *testing.T) {
	node := newNode(t)
	host := node.Filesystem()
	deep := work + `\deep` + strings.Repeat(`\directory-name-0123`, 800)
	require.NoError(t, node.Mkdir(deep))
	var peak uint64
	_, err := node.Inject(winsim.Fault{Call: "Remove", Times: 1, Do: func(*winsim.Node) {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		peak = stats.HeapAlloc
	}})
	require.NoError(t, err)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	require.NoError(t, host.Rmdir(work+`\deep`, true))
	if node.Exists(work + `\deep`) {
		t.Error("something is left")
	}
	// 800 paths of 8 KB on average would be more than 6 MB.
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("at the deepest point %d more bytes were in use", grown)
	}
}

// TestPathExists_Gone: the mounted folder of a volume that is certainly gone is nothing, that of one that is not ready
// exists. Rmdir removes both.
func TestPathExists_Gone(t *testing.T) {
	for state, exists := range map[winsim.VolumeState]bool{winsim.Healthy: true, winsim.NotReady: true, winsim.Locked: true, winsim.Raw: true, winsim.Gone: false} {
		for name, limit := range map[string]func(*winsim.Node) fsapi.HostAPI{
			"without limits": (*winsim.Node).Filesystem,
			"within limits":  func(n *winsim.Node) fsapi.HostAPI { return limited(t, n.Filesystem()) },
		} {
			node := newNode(t)
			_, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB}) // with an adapter that can rescan
			check(t, err)
			host := limit(node)
			check(t, node.SetVolumeState(volume, state))
			if got, err := host.PathExists(work + `\mount`); err != nil || got != exists {
				t.Errorf("%s, %s: %v, %v, want %v", state, name, got, err, exists)
			}
			if got, err := host.IsSymlink(work + `\mount`); err != nil || got && !exists {
				t.Errorf("%s, %s: it is a link: %v, %v", state, name, got, err)
			}
			check(t, host.Rmdir(work+`\mount`, true))
			if node.Exists(work + `\mount`) {
				t.Errorf("%s, %s: it was not removed", state, name)
			}
		}
	}
}
