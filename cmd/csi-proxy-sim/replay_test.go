package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// recordedCalls is a recording of the default node.
func recordedCalls(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	machine, stop, err := record.On(t.Context(), node, record.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	disks, err := disk.New(diskapi.NewOn(machine))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disks.PartitionDisk(t.Context(), &disk.PartitionDiskRequest{DiskNumber: 1}); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplay(t *testing.T) {
	same := recordedCalls(t)
	text, err := os.ReadFile(same)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	differs := write("differs", strings.Replace(string(text), `"method":"UpdateDisk"`, `"method":"UpdateDisk","error":{"windows":5}`, 1))
	newer := write("newer", strings.Replace(string(text), `"version":1`, `"version":9`, 1))
	first, _, _ := strings.Cut(string(text), "{\"call\"")
	none := write("none", first)
	hostile := write("hostile", first+`{"call":{"seq":1,"method":"\u001b[2JNow"}}`+"\n")
	var compressed strings.Builder
	zip := gzip.NewWriter(&compressed)
	_, _ = zip.Write(text)
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	zipped := write("calls.jsonl.gz", compressed.String())
	cut := write("cut.jsonl.gz", compressed.String()[:compressed.Len()-100])
	for _, test := range []struct {
		name       string
		args       []string
		code       int
		out, trail string // parts of what is printed
	}{
		{"same", []string{same}, 0, "No differences.\n", ""},
		{"differs", []string{differs}, 1, "recorded: access is denied (Windows error 5)\n    emulated: success\n\n1 differences.\n", ""},
		{"newer", []string{newer}, 2, "", "the recording has format version 9, and this program reads versions up to 1; use a newer program\n"},
		{"missing", []string{filepath.Join(t.TempDir(), "none")}, 2, "", "csi-proxy-sim: open "},
		{"no file", nil, 2, "", "0 files are given; pass one recording\nRun 'csi-proxy-sim replay -help' for the flags.\n"},
		{"format", []string{"-o", "xml", same}, 2, "", `-o: "xml" is neither text nor json`},
		{"help", []string{"-help"}, 0, "Usage: csi-proxy-sim replay [flags] FILE\n", ""},
		{"gzip", []string{zipped}, 0, "No differences.\n", ""},
		{"cut", []string{cut}, 0, "Note: the recording is cut off, as by a kill or a full disk; the ", ""},
		{"no calls", []string{none}, 2, "Note: no call was compared, because the recording has none after its description; use the node while its calls are recorded.\n", ""},
		{"escapes", []string{"-skipped", hostile}, 2, "Skipped call 1, <U+001B>[2JNow: the seam has no such call.\n", ""},
		{"skipped", []string{"-skipped", same}, 0, "Compared ", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out, trail strings.Builder
			if code := runReplay(test.args, &out, &trail); code != test.code || !strings.Contains(out.String(), test.out) || !strings.Contains(trail.String(), test.trail) {
				t.Errorf("exit code %d, %s%s; want %d, %s%s", code, &out, &trail, test.code, test.out, test.trail)
			}
		})
	}
	var out strings.Builder
	var report replay.Report
	if code := runReplay([]string{"-o=json", differs}, &out, &out); code != 1 {
		t.Errorf("exit code %d: %s", code, &out)
	}
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil || len(report.Differences) != 1 || report.Differences[0].Method != "UpdateDisk" {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestRecordCalls serves a node with -record-calls, and replays what was recorded.
func TestRecordCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options{preset: "default", socketDir: socketDir(t)}
	flags := &daemon.Flags{KubeletPath: `C:\var\lib\kubelet`, StopTimeout: 5e9, Privacy: true, Record: record.Config{Path: path}}
	list := func() {
		defer cancel()
		where := []client.Option{client.WithWait()}
		if o.socketDir != "" {
			where = append(where, client.WithPipePath(filepath.Join(o.socketDir, "csi-proxy-disk-v1.sock")))
		}
		c, err := diskclient.New(ctx, where...)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := c.ListDiskLocations(ctx, &diskv1.ListDiskLocationsRequest{}); err != nil {
			t.Error(err)
		}
	}
	if err := o.serve(ctx, flags, service.Notify{Ready: func() { go list() }}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if code := runReplay([]string{path}, &out, &out); code != 0 {
		t.Errorf("exit code %d: %s", code, &out)
	}
}
