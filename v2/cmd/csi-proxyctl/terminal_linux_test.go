package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// terminal runs the program in a terminal. Typed Ctrl-C becomes a signal.
type terminal struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	done chan struct{} // closed when the program ends

	mu     sync.Mutex
	output bytes.Buffer
	sizes  []terminalSize
	more   chan struct{} // receives a value after new output
}

// terminalSize is the size from some byte of the output on.
type terminalSize struct{ from, rows, cols int }

// startInTerminal runs the program in a terminal that does not report its size.
func startInTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	return startInSized(t, 0, 0, nil, args...)
}

// startInSized runs the program in a terminal of a size.
func startInSized(t *testing.T, rows, cols int, env []string, args ...string) *terminal {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { pty.Close() })
	number := 0
	if err := control(pty, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()
	cmd, _ := program(t, args...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm", "NO_COLOR="), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	term := &terminal{t: t, pty: pty, cmd: cmd, done: make(chan struct{}), more: make(chan struct{}, 1)}
	term.resize(rows, cols)
	require.NoError(t, cmd.Start())
	go term.read()
	t.Cleanup(func() { <-term.done })
	return term
}

// control calls use with the file descriptor. File.Fd would make reads block forever.
func control(file *os.File, use func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var useErr error
	if err := raw.Control(func(fd uintptr) { useErr = use(int(fd)) }); err != nil {
		return err
	}
	return useErr
}

// read collects the output until the program ends.
func (term *terminal) read() {
	defer close(term.done)
	buffer := make([]byte, 4096)
	for {
		n, err := term.pty.Read(buffer) // fails when the last process ends
		term.mu.Lock()
		term.output.Write(buffer[:n])
		term.mu.Unlock()
		select {
		case term.more <- struct{}{}:
		default:
		}
		if err != nil {
			break
		}
	}
	_ = term.cmd.Wait() // the test checks the exit code
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.output.String()
}

// guard limits the wait for a program that hangs.
const guard = time.Minute

// await waits until a text is on the screen.
func (term *terminal) await(text string) {
	term.t.Helper()
	hangs := time.After(guard)
	for !strings.Contains(term.text(), text) {
		select {
		case <-term.more:
		case <-hangs:
			term.kill()
			term.t.Fatalf("no %q:\n%s", text, term.text())
		case <-term.done:
			if !strings.Contains(term.text(), text) {
				term.t.Fatalf("it has ended without %q:\n%s", text, term.text())
			}
		}
	}
}

// resize changes the size of the terminal and signals the program, as a window does.
func (term *terminal) resize(rows, cols int) {
	term.t.Helper()
	term.mu.Lock()
	defer term.mu.Unlock()
	term.sizes = append(term.sizes, terminalSize{term.output.Len(), rows, cols})
	if err := control(term.pty, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
	}); err != nil {
		term.t.Fatal(err)
	}
}

// screen returns what the terminal shows.
func (term *terminal) screen() *screen {
	term.mu.Lock()
	defer term.mu.Unlock()
	text := term.output.String()
	var s *screen
	rest := ""
	for i, size := range term.sizes {
		if s == nil {
			s = newScreen(size.rows, size.cols)
		} else {
			s.resize(size.rows, size.cols)
		}
		end := len(text)
		if i+1 < len(term.sizes) {
			end = term.sizes[i+1].from
		}
		rest = s.write(rest + text[size.from:end])
	}
	return s
}

// awaitScreen waits until the screen shows something.
func (term *terminal) awaitScreen(what string, shows func(s *screen) bool) *screen {
	term.t.Helper()
	hangs := time.After(guard)
	for {
		s := term.screen()
		if shows(s) {
			return s
		}
		select {
		case <-term.more:
		case <-hangs:
			term.kill()
			term.t.Fatalf("no %s:\n%s", what, s)
		case <-term.done:
			if s := term.screen(); shows(s) {
				return s
			}
			term.t.Fatalf("it has ended without %s:\n%s", what, s)
		}
	}
}

func (term *terminal) echoes() bool {
	term.t.Helper()
	var state *unix.Termios
	if err := control(term.pty, func(fd int) (err error) {
		state, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	}); err != nil {
		term.t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// awaitMute polls until the terminal does not echo.
func (term *terminal) awaitMute() {
	term.t.Helper()
	hangs := time.After(guard)
	for term.echoes() {
		select {
		case <-hangs:
			term.kill()
			term.t.Fatalf("the terminal always echoes:\n%s", term.text())
		case <-term.done:
			term.t.Fatalf("it has ended, and always echoed:\n%s", term.text())
		case <-time.After(time.Millisecond):
		}
	}
}

func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.pty.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

func (term *terminal) kill() { _ = term.cmd.Process.Kill() } // it may have ended already

// exit waits for the end and compares the exit code.
func (term *terminal) exit(want int) {
	term.t.Helper()
	select {
	case <-term.done:
	case <-time.After(guard):
		term.kill()
		<-term.done
	}
	if got := term.cmd.ProcessState.ExitCode(); got != want {
		term.t.Errorf("exit code %d, want %d:\n%s", got, want, term.text())
	}
}

const ctrlC = "\x03"

func TestTerminal_QuestionEndsWithCtrlC(t *testing.T) {
	startNode(t)
	term := startInTerminal(t, "disk", "offline", "3")
	term.await("[y/N] ")
	term.press(ctrlC)
	term.exit(command.ExitInterrupted)
	if !strings.Contains(term.text(), "csi-proxyctl: interrupted\r\n") {
		t.Errorf("it says\n%s", term.text())
	}
}

// TestTerminal_DangerousCommandsAsk: in a terminal they ask; in a pipe they refuse, and take no
// answer from it.
func TestTerminal_DangerousCommandsAsk(t *testing.T) {
	node := startNode(t)
	online := func() bool {
		info, err := node.DiskInfo(3)
		require.NoError(t, err)
		return !info.Offline
	}
	term := startInTerminal(t, "disk", "offline", "3")
	term.await("Take disk 3 offline?")
	term.press("n\n")
	term.exit(command.ExitFailure)
	if !online() {
		t.Error("the disk is offline after no")
	}
	cmd, output := program(t, "disk", "offline", "3")
	cmd.Stdin = strings.NewReader("y\n")
	_ = cmd.Run() // the test checks the exit code
	if got := cmd.ProcessState.ExitCode(); got != command.ExitUsage || !online() || !strings.Contains(output.String(), "--yes") {
		t.Errorf("in a pipe: exit code %d, online %v\n%s", got, online(), output)
	}
	term = startInTerminal(t, "disk", "offline", "3")
	term.await("[y/N] ")
	term.press("y\n")
	term.exit(command.ExitOK)
	if online() {
		t.Error("the disk is online after yes")
	}
}

// TestTerminal_Timeout: --timeout does not include prompts.
func TestTerminal_Timeout(t *testing.T) {
	startNode(t)
	secret := startInTerminal(t, "smb", "map", `\\files\data`, "--user", "csi", "--timeout", "1s")
	question := startInTerminal(t, "disk", "offline", "3", "--timeout", "1s")
	secret.awaitMute()
	question.await("[y/N] ")
	<-time.After(1100 * time.Millisecond) // longer than --timeout
	secret.press("csi-Pa55\n")
	secret.exit(command.ExitOK)
	question.press("n\n")
	question.exit(command.ExitFailure)
	if !strings.Contains(question.text(), "not confirmed") {
		t.Errorf("it says\n%s", question.text())
	}
}

func TestTerminal_DoesNotShowSecrets(t *testing.T) {
	startNode(t)
	term := startInTerminal(t, "smb", "map", `\\files\data`, "--user", "csi")
	term.await("Password of csi")
	term.awaitMute()
	term.press("csi-Pa55\n")
	term.exit(command.ExitOK)
	if strings.Contains(term.text(), "Pa55") || !strings.Contains(term.text(), "mapped") {
		t.Errorf("the terminal shows\n%s", term.text())
	}
}

func TestTerminal_EchoesAgainAfterCtrlC(t *testing.T) {
	startNode(t)
	term := startInTerminal(t, "smb", "map", `\\files\data`, "--user", "csi")
	term.awaitMute()
	term.press(ctrlC)
	term.exit(command.ExitInterrupted)
	if !term.echoes() {
		t.Error("the terminal stays mute")
	}
	if !strings.Contains(term.text(), "csi-proxyctl: interrupted\r\n") {
		t.Errorf("it says\n%s", term.text())
	}
}

// TestTerminal_SecondCtrlC: after the first Ctrl-C a command cleans up; the second ends the process at once.
func TestTerminal_SecondCtrlC(t *testing.T) {
	term := startInSized(t, 0, 0, []string{"CSI_PROXYCTL_TEST_MAIN=" + cleansUp})
	term.await("works")
	term.press(ctrlC)
	term.await("cleans up")
	term.press(ctrlC)
	term.exit(command.ExitInterrupted)
}
