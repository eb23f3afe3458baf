package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// fortyVolumes is a node with 40 volumes of pods. Disk 37 is read-only, and the last volume is full.
func fortyVolumes() winsim.Model {
	model := winsim.Default()
	for i := range 40 {
		volume := fmt.Sprintf("40000000-0000-0000-0000-%012d", i)
		disk := winsim.Disk{
			Size: 10 * winsim.GiB, Serial: fmt.Sprintf("PVC-%02d", i), Layout: winsim.LayoutGPT, ReadOnly: i == 33,
			Partitions: []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{ID: volume, Used: winsim.GiB}}},
		}
		if i == 39 {
			disk.Partitions[1].Volume.Used = 10190 * winsim.MiB
		}
		model.Disks = append(model.Disks, disk)
		model.Files = append(model.Files, winsim.File{Path: fmt.Sprintf(`C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi.example.com\pvc-%02d\globalmount`, i), Volume: volume})
	}
	return model
}

// serveNode serves a node on sockets of its own. The two functions stop the server and start it again.
func serveNode(t *testing.T, model winsim.Model) (node *winsim.Node, stop, start func()) {
	t.Helper()
	node, err := winsim.New(model)
	require.NoError(t, err)
	dir := serve.SocketDir(t)
	t.Setenv("CSI_PROXY_SOCKET_DIR", dir)
	end := serve.StartWith(t, node, serve.Config{Config: daemon.Config{SocketDir: dir}})
	return node, func() { end() }, func() { end = serve.StartWith(t, node, serve.Config{Config: daemon.Config{SocketDir: dir}}) }
}

var clock = regexp.MustCompile(` [0-2][0-9]:[0-5][0-9]:[0-5][0-9]$`)

// checkFrame checks what holds for every frame.
func checkFrame(t *testing.T, s *screen) {
	t.Helper()
	lines := s.lines()
	if !s.alternate || len(s.wrapped) > 0 || len(s.unknown) > 0 {
		t.Errorf("alternate screen: %v, wrapped %q, unknown %q", s.alternate, s.wrapped, s.unknown)
	}
	if !strings.Contains(lines[0], "problem") && !strings.Contains(lines[0], "not current") || !clock.MatchString(lines[0]) {
		t.Errorf("header %q", lines[0])
	}
}

func contains(text string) func(*screen) bool {
	return func(s *screen) bool { return strings.Contains(s.String(), text) }
}

// TestWatch_FortyVolumes: the screen of an ordinary terminal is enough for a node with 40 volumes.
func TestWatch_FortyVolumes(t *testing.T) {
	serveNode(t, fortyVolumes())
	term := startInSized(t, 24, 80, nil, "watch", "--interval", "1h")
	s := term.awaitScreen("node", contains("disk 37 "))
	checkFrame(t, s)
	lines := s.lines()
	if !strings.Contains(lines[0], "44 disks, 42 volumes, 2 problems: 2 will hurt") {
		t.Errorf("header %q", lines[0])
	}
	if !regexp.MustCompile(`(?s)! will hurt: .*! will hurt: disk 37.*disk 37 `).MatchString(s.String()) { // problems first
		t.Errorf("the first screen is\n%s", s)
	}
	position := regexp.MustCompile(`1-21 of [0-9]+$`)
	if !position.MatchString(lines[23]) || !strings.Contains(lines[23], "q quit") {
		t.Errorf("footer %q", lines[23])
	}

	term.press("\x1b[6~") // PgDn
	s = term.awaitScreen("second page", contains("21-41 of "))
	checkFrame(t, s)
	term.press("\x1b[B") // down
	term.awaitScreen("next line", contains("22-42 of "))
	term.press("\x1b[A\x1b[5~") // up, PgUp
	term.awaitScreen("first page", contains("1-21 of "))
	term.press("\x1b[F") // End
	checkFrame(t, term.awaitScreen("end", func(s *screen) bool {
		return regexp.MustCompile(`-([0-9]+) of ([0-9]+)$`).MatchString(s.lines()[23]) && !strings.Contains(s.lines()[23], "1-21")
	}))

	term.press("/pvc-17")
	s = term.awaitScreen("filter", contains("/pvc-17█"))
	if text := s.String(); !strings.Contains(text, "disk 21 ") || strings.Contains(text, "disk 20 ") || strings.Contains(text, "disk 37") {
		t.Errorf("filtered:\n%s", text)
	}
	term.press("\r")
	checkFrame(t, term.awaitScreen("filter in use", contains("filter pvc-17")))
	term.press("\x1b") // Esc
	term.awaitScreen("everything", contains("1-21 of "))
	term.press("p")
	s = term.awaitScreen("problems only", contains("problems only"))
	if text := s.String(); !strings.Contains(text, "disk 37") || strings.Contains(text, "disk 0 ") {
		t.Errorf("problems:\n%s", text)
	}

	term.press("q")
	term.exit(command.ExitOK)
	if s := term.screen(); s.alternate || s.hidden || strings.TrimSpace(s.String()) != "" {
		t.Errorf("it leaves alternate screen %v, cursor hidden %v:\n%s", s.alternate, s.hidden, s)
	}
	if !term.echoes() {
		t.Error("the terminal does not echo afterwards")
	}
}

// TestWatch_Resize: a new size shows at once, not with the next look, and nothing wraps.
func TestWatch_Resize(t *testing.T) {
	serveNode(t, winsim.Busy())
	term := startInSized(t, 24, 80, nil, "watch", "--interval", "1h")
	checkFrame(t, term.awaitScreen("node", contains("disk 5")))
	for _, size := range []struct{ rows, cols int }{{24, 60}, {50, 200}, {10, 45}} {
		term.resize(size.rows, size.cols)
		// The footer is on the last line, at its end.
		position := regexp.MustCompile(`[0-9]+-[0-9]+ of [0-9]+$`)
		s := term.awaitScreen(fmt.Sprintf("frame of %d columns", size.cols), func(s *screen) bool {
			last := []rune(s.lines()[size.rows-1])
			return len(last) == size.cols && position.MatchString(string(last))
		})
		checkFrame(t, s)
	}
	term.press("q")
	term.exit(command.ExitOK)
}

// TestWatch_MarksChanges: a line that has changed since the last look has a mark.
func TestWatch_MarksChanges(t *testing.T) {
	node, _, _ := serveNode(t, winsim.Default())
	term := startInSized(t, 40, 100, nil, "watch", "--interval", "20ms")
	s := term.awaitScreen("node", contains("disk 1"))
	if !strings.Contains(s.lines()[1], "no change") || strings.Contains(s.String(), "* ") {
		t.Errorf("marks at the start:\n%s", s)
	}
	if _, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Serial: "NEW"}); err != nil {
		t.Fatal(err)
	}
	s = term.awaitScreen("mark", func(s *screen) bool { return regexp.MustCompile(`(?m)^\* .*serial NEW`).MatchString(s.String()) })
	if strings.Count(s.String(), "\n* ") > 2 || !strings.Contains(s.lines()[1], "last change at ") {
		t.Errorf("it marks\n%s", s)
	}
	checkFrame(t, s)
	term.press(ctrlC)
	term.exit(command.ExitInterrupted)
	if !strings.Contains(term.screen().String(), "csi-proxyctl: interrupted") {
		t.Errorf("it says\n%s", term.screen())
	}
}

// TestWatch_ServerRestarts: the error shows, the last picture stays, and then the view goes on.
func TestWatch_ServerRestarts(t *testing.T) {
	node, stop, start := serveNode(t, winsim.Default())
	term := startInSized(t, 24, 80, nil, "watch", "--interval", "20ms")
	term.awaitScreen("node", contains("disk 1"))
	stop()
	s := term.awaitScreen("error", func(s *screen) bool { return strings.HasPrefix(s.lines()[1], "run csi-proxyctl doctor: ") })
	if head := s.lines()[0]; !strings.Contains(head, "not current: this is the state of ") || strings.Contains(head, "no problems") {
		t.Errorf("the state looks current: %s", head)
	}
	if !strings.Contains(s.String(), "disk 1") {
		t.Errorf("the picture is gone:\n%s", s)
	}
	checkFrame(t, s)
	if _, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Serial: "AFTER-RESTART"}); err != nil {
		t.Fatal(err)
	}
	start()
	checkFrame(t, term.awaitScreen("picture after the restart", contains("AFTER-RESTART")))
	term.press("q")
	term.exit(command.ExitOK)
}

// TestWatch_HostileNames: the name of a device reaches the terminal as text.
func TestWatch_HostileNames(t *testing.T) {
	model := winsim.Default()
	model.Disks[1].Serial = "\x1b]0;owned\a\x1b[2J\u009b31m"
	model.Firmware.Serial = "\x1b[5mblink"
	serveNode(t, model)
	term := startInSized(t, 24, 120, nil, "watch", "--interval", "1h")
	s := term.awaitScreen("node", contains("disk 1"))
	checkFrame(t, s)
	for _, sequence := range []string{"]0;owned\a", "\u009b", "\x1b[5m"} {
		if strings.Contains(term.text(), sequence) {
			t.Errorf("the terminal got %q", sequence)
		}
	}
	if !strings.Contains(s.String(), "<U+001B>]0;owned") {
		t.Errorf("the serial number is missing:\n%s", s)
	}
	term.press("/\x1b[200~\x1b]0;owned\a\x1b[201~") // pasted
	checkFrame(t, term.awaitScreen("filter", contains("/")))
	term.press("\r")
	term.press(ctrlC)
	term.exit(command.ExitInterrupted)
	if strings.Contains(term.text(), "]0;owned\a") {
		t.Error("a pasted sequence reaches the terminal")
	}
}

// TestWatch_Count: --count ends the view, and the last picture stays on the ordinary screen.
func TestWatch_Count(t *testing.T) {
	serveNode(t, winsim.Default())
	term := startInSized(t, 40, 100, nil, "watch", "--interval", "1ms", "--count", "3")
	term.exit(command.ExitOK)
	if s := term.screen(); s.alternate || !strings.Contains(s.String(), "WINSIM0003") {
		t.Errorf("it leaves\n%s", s)
	}
}

// TestWatch_PlainTerminals: without colours the view has none; a terminal that cannot do more than
// print, or does not report its size, gets plain text.
func TestWatch_PlainTerminals(t *testing.T) {
	serveNode(t, winsim.Busy())
	term := startInSized(t, 24, 80, []string{"NO_COLOR=1"}, "watch", "--interval", "1h")
	checkFrame(t, term.awaitScreen("node", contains("! ")))
	term.press("q")
	term.exit(command.ExitOK)
	if colours := regexp.MustCompile(`\x1b\[[0-9;]*[1-9][0-9;]*m`).FindString(term.text()); colours != "" {
		t.Errorf("it prints %q with NO_COLOR", colours)
	}
	for name, start := range map[string]func() *terminal{
		"dumb": func() *terminal {
			return startInSized(t, 24, 80, []string{"TERM=dumb"}, "watch", "--count", "2", "--interval", "1ms")
		},
		"JSON": func() *terminal {
			return startInSized(t, 24, 80, nil, "watch", "--count", "2", "--interval", "1ms", "-o", "json")
		},
		"unknown size": func() *terminal {
			return startInSized(t, 0, 0, []string{"NO_COLOR=1"}, "watch", "--count", "2", "--interval", "1ms")
		},
	} {
		t.Run(name, func(t *testing.T) {
			term := start()
			term.exit(command.ExitOK)
			if text := term.text(); strings.Contains(text, "\x1b") || strings.Count(text, "WINSIM-NODE-1") != 2 {
				t.Errorf("it prints %q", text)
			}
		})
	}
}
