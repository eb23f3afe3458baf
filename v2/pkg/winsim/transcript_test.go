package winsim_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var update = flag.Bool("update", false, "replace the golden files in testdata")

// words are what transcripts call things that are long to write.
var words = map[string]string{
	"$data":          `\\?\Volume{11111111-1111-1111-1111-111111111111}\`,
	"$raw":           `\\?\Volume{22222222-2222-2222-2222-222222222222}\`,
	"$offline":       `\\?\Volume{33333333-3333-3333-3333-333333333333}\`,
	"$gone":          `\\?\Volume{44444444-4444-4444-4444-444444444444}\`,
	"$unknown":       `\\?\Volume{55555555-5555-5555-5555-555555555555}\`,
	"$x255":          strings.Repeat("x", 255),
	"$x256":          strings.Repeat("x", 256),
	"$control":       "a\x01b",
	"$open":          "iqn.2025-01.com.example:open",
	"$guarded":       "iqn.2025-01.com.example:guarded",
	"$unknownTarget": "iqn.2025-01.com.example:unknown",
	"$empty":         "",
}

func init() {
	for disk := range 8 {
		words[fmt.Sprintf("$d%d", disk)] = fmt.Sprintf(`\\.\PhysicalDrive%d`, disk)
		for partition := 1; partition <= 4; partition++ { // of the model
			words[fmt.Sprintf("$v%d.%d", disk, partition)] = fmt.Sprintf(`\\?\Volume{d%07x-0000-4000-8000-%012x}\`, disk, partition)
		}
	}
}

var transcriptModel = winsim.Model{
	Volumes: []winsim.Volume{
		{ID: winsim.SystemVolume, Letter: "C"},
		{ID: "dddddddd-0000-0000-0000-000000000000", Letter: "D"},
		{ID: words["$data"]},
		{ID: words["$raw"], State: winsim.Raw},
		{ID: words["$offline"], State: winsim.NotReady},
		{ID: words["$gone"], State: winsim.Gone},
	},
	Files: []winsim.File{
		{Path: `C:\locked`, ReadOnly: true},
		{Path: `C:\locked.txt`, Content: "data", ReadOnly: true},
	},
}

// TestTranscripts runs the commands in testdata/*.txt, each file on a node of its own,
// and compares what they print. The commands are the cases of run below.
func TestTranscripts(t *testing.T) {
	eachTranscript(t, func(t *testing.T, file, want string) {
		t.Helper()
		got := replay(t, newNode(t, modelFor(t, file)), want, func(*winsim.Node) {})
		if *update && got != want {
			mustAll(t, os.WriteFile(file, []byte(got), 0o600))
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("differs (-want +got); run the test with -update to accept it:\n%s", diff)
		}
	})
}

// eachTranscript runs a test for each transcript.
func eachTranscript(t *testing.T, test func(t *testing.T, file, transcript string)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // for models with real time
				text, err := os.ReadFile(file)
				mustAll(t, err)
				test(t, file, strings.ReplaceAll(string(text), "\r\n", "\n"))
			})
		})
	}
}

// modelFor is the model beside a transcript, or the usual one.
func modelFor(t *testing.T, file string) winsim.Model {
	t.Helper()
	name := strings.TrimSuffix(file, ".txt") + ".yaml"
	text, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return transcriptModel
	}
	mustAll(t, err)
	defer text.Close()
	model, err := winsim.LoadModel(text, name)
	mustAll(t, err)
	return model
}

// replay returns the transcript with what its commands print now: behind "----" on the
// command's line, or below it with a tab before each line if it is more than one. After is called after each command.
func replay(t *testing.T, node *winsim.Node, transcript string, after func(*winsim.Node)) string {
	t.Helper()
	shell := &shell{t: t, node: node, held: map[string]func(){}, fingerprints: map[uint32]string{}}
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		case strings.HasPrefix(line, "\t"): // what was printed before
		default:
			command, _, _ := strings.Cut(line, " ----")
			result := shell.run(command)
			after(shell.node)
			if strings.Contains(result, "\n") {
				result = "\n\t" + strings.ReplaceAll(result, "\n", "\n\t")
			} else {
				result = " " + result
			}
			out.WriteString(command + " ----" + result + "\n")
		}
	}
	return out.String()
}

type shell struct {
	t    *testing.T
	node *winsim.Node
	held map[string]func() // what was opened

	fingerprints map[uint32]string
}

// run executes one command and returns what it prints.
func (s *shell) run(line string) string {
	s.t.Helper()
	arguments := strings.Fields(line)
	for i, argument := range arguments {
		for word, meaning := range words {
			argument = strings.ReplaceAll(argument, word, meaning)
		}
		arguments[i] = argument
	}
	command, path, second := arguments[0], "", ""
	if len(arguments) > 1 {
		path = arguments[1]
	}
	if len(arguments) > 2 {
		second = arguments[2]
	}
	ctx, n, result := s.t.Context(), s.node, ""
	var err error
	switch command {
	// The seam's calls.
	case "FileInfo":
		result, err = describe(n.FileInfo(ctx, pathOf(path)))
	case "Follow":
		result, err = describe(n.FileInfo(ctx, win.Following(path)))
	case "TargetInfo":
		result, err = describe(n.TargetInfo(ctx, pathOf(path)))
	case "ReparsePoint":
		var point win.ReparsePoint
		if point, err = n.ReparsePoint(ctx, pathOf(path)); err == nil {
			result = fmt.Sprintf("%#x %s", uint32(point.Tag), point.Substitute)
			if point.Relative {
				result += " (relative)"
			}
		}
	case "OpenDirectory":
		var dir win.Directory
		if dir, err = n.OpenDirectory(ctx, pathOf(path)); err == nil {
			dir.Close()
		}
	case "ListDirectory", "CreateDirectory", "CreateDirectoryLink", "Remove", "SetMountPoint", "DeleteMountPoint":
		result, err = s.inDirectory(command, pathOf(path), second)

	// A test's own access.
	case "mkdir":
		err = n.Mkdir(path)
	case "write":
		err = n.WriteFile(path, second)
	case "read":
		result, err = n.ReadFile(path)
		result = strconv.Quote(result)
	case "symlink":
		err = n.Symlink(path, second)
	case "filesymlink":
		err = n.Create(winsim.File{Path: path, FileSymlink: second})
	case "junction":
		err = n.Junction(path, second)
	case "mount":
		err = n.MountFolder(path, second)
	case "state":
		err = n.SetVolumeState(path, winsim.VolumeState(second))
	case "exists":
		result = strconv.FormatBool(n.Exists(path))
	case "removeall":
		err = n.RemoveAll(path)
	case "tree":
		result = n.Tree(path)
	case "hold":
		s.held[path], err = n.Hold(path)
	case "release":
		s.held[path]()
	case "shortname":
		result, err = n.ShortName(path)
		result = strconv.Quote(result)
	case "mkdirshort":
		err = n.Create(winsim.File{Path: path, Short: second})
	case "swap":
		err = n.Swap(path, second)
	case "chain": // of n links, each to the one before: path\0 is a directory
		count, _ := strconv.Atoi(second)
		err = n.Mkdir(path + `\0`)
		for i := 1; i <= count && err == nil; i++ {
			err = n.Symlink(fmt.Sprintf(`%s\%d`, path, i), fmt.Sprintf(`%s\%d`, path, i-1))
		}
	default:
		if result, err = s.storage(command, arguments[1:]); errors.Is(err, errUnknown) {
			s.t.Fatalf("unknown command in %q", line)
		}
	}
	switch code := winerr.CodeOf(err); {
	case bare(err, code) && code >= 0x80000000:
		result = fmt.Sprintf("error %#x", uint32(code))
	case bare(err, code): // as the seam answers
		result = fmt.Sprintf("error %d", uint32(code))
	case err != nil:
		result = "error: " + err.Error()
	case result == "":
		result = "ok"
	}
	for word, meaning := range words {
		if meaning != "" {
			result = strings.ReplaceAll(result, meaning, word)
		}
	}
	return strings.TrimSpace(result)
}

// pathOf reads a path of the seam. Links are followed up to a '^' that takes the place of a
// backslash, or up to the last name.
func pathOf(text string) win.Path {
	if base, rest, ok := strings.Cut(text, "^"); ok {
		return win.Path{Base: base, Rest: rest}
	}
	return win.Anywhere(text)
}

// inDirectory runs a call of the seam in the directory in which a path ends.
func (s *shell) inDirectory(command string, path win.Path, second string) (result string, err error) {
	s.t.Helper()
	ctx := s.t.Context()
	dir, name := path.Split()
	opened, err := s.node.OpenDirectory(ctx, dir)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	switch command {
	case "ListDirectory":
		names := []string{}
		err = win.List(ctx, opened, name, func(_ win.Tree, entries []win.DirEntry) error {
			for _, entry := range entries {
				names = append(names, entry.Name)
			}
			return nil
		})
		slices.Sort(names)
		result = fmt.Sprint(names)
	case "CreateDirectory":
		err = opened.CreateDirectory(ctx, name)
	case "CreateDirectoryLink":
		err = opened.CreateDirectoryLink(ctx, name, second)
	case "Remove":
		err = opened.Remove(ctx, name)
	case "SetMountPoint":
		err = opened.SetMountPoint(ctx, name, win.VolumeID(second))
	case "DeleteMountPoint":
		err = opened.DeleteMountPoint(ctx, name)
	}
	return result, err
}

func describe(info win.FileInfo, err error) (string, error) {
	text := "file"
	if info.Directory {
		text = "directory"
	}
	switch info.Tag {
	case 0:
	case win.TagSymlink:
		text += ", symlink"
	case win.TagMountPoint:
		text += ", mount point"
	default:
		text += fmt.Sprintf(", tag %#x", uint32(info.Tag))
	}
	if info.ReadOnly {
		text += ", read-only"
	}
	return text, err
}
