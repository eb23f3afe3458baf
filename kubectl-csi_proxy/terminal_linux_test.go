package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
