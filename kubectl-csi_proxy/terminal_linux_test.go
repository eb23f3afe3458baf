package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// TestTerminal: a command that asks gets the terminal of its user, with its size, and leaves it as it was.
func TestTerminal(t *testing.T) {
	s := newServer()
	s.addPod("t")
	s.programs["t"] = func(_ context.Context, _ []string, in io.Reader, out, _ io.Writer) int {
		fmt.Fprint(out, "Sure? ")
		answer, _ := bufio.NewReader(in).ReadString('\n')
		fmt.Fprintf(out, "it says %q", answer)
		return 3
	}
	s.config(t)
	ours, theirs := openTerminal(t)
	before, stateErr := term.GetState(int(theirs.Fd()))
	cmd := newCommand()
	cmd.SetArgs([]string{"ctl", "win-t", "volume", "format"})
	cmd.SetIn(theirs)
	cmd.SetOut(theirs)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(t.Context()) }()
	shown := ""
	for answered := false; !strings.Contains(shown, "it says"); {
		text := make([]byte, 100)
		n, err := ours.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		if shown += string(text[:n]); !answered && strings.Contains(shown, "Sure? ") {
			answered = true
			if _, err := io.WriteString(ours, "yes\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-ended; err == nil || err.Error() != "csi-proxyctl ended with exit code 3" || !strings.Contains(shown, `it says "yes\n"`) {
		t.Errorf("got %q, %v", shown, err)
	}
	if size := <-s.terminal; size != (remotecommand.TerminalSize{Width: 80, Height: 24}) {
		t.Errorf("the terminal has %+v", size)
	}
	if after, err := term.GetState(int(theirs.Fd())); errors.Join(stateErr, err) != nil || *after != *before {
		t.Errorf("the terminal was %+v and is %+v, %v", before, after, err)
	}
}

// TestScreen_Watch: of what 'csi-proxyctl watch' writes, only what it can do without is left out: tabs each 8 columns, which all
// terminals have, names of keys that it does not use, and questions about what the terminal can do.
func TestScreen_Watch(t *testing.T) {
	ours, theirs := openTerminal(t)
	program := osexec.Command(filepath.Join(programs, "csi-proxyctl"), "watch", "--count=2", "--interval=1s", "--endpoint-dir", programs)
	program.Env = append(os.Environ(), "TERM=xterm-256color")
	program.Stdin, program.Stdout = theirs, theirs
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	var written strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&written, ours) // until the other end is closed
	}()
	err := errors.Join(program.Wait(), theirs.Close())
	<-read
	want := regexp.MustCompile(`\x1b\[(\?5W|\?2026\$p|\?2027\$p|>4(;2)?m|>1u|<1u|\?u)`).ReplaceAllString(written.String(), "")
	if got := shown(t, written.String()); err != nil || got != want || !strings.Contains(got, "\x1b[?1049h") || !strings.Contains(got, "disk 4") {
		t.Errorf("%q became %q, want %q, %v", &written, got, want, err)
	}
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}
