// Package windows_test asks a Windows machine what only Windows can tell. It runs the conformance suite and the
// tests of the code that calls Windows on it as well. 'make build' compiles it to csi-proxy-verify.exe. Without -dir the
// same tests ask the emulated node of v2/pkg/winsim. Without any flag TestBrief asks a Windows machine.
//
// A question is a subtest with an ID such as Q-msr, which never gets another meaning. The comment above it is its
// text. What it finds out are attributes of the subtest, and what it measures is in the log: go test -json has both. What
// no program can ask yet is a line of later.txt and a skipped subtest.
package windows_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

const introduction = `csi-proxy-verify asks this Windows machine what only Windows can tell. Run it as an administrator. Without flags it
changes nothing, and ends within five minutes with a summary for an issue.

With -dir it tests CSI Proxy on the machine, which may be spoiled then. Keep its output:

  csi-proxy-verify -dir C:\verify > verify.log

It changes no disk, folder, share or portal but those below. It also rescans storage adapters, mounts the volume of
Windows in the folder for a moment, and installs services of its own. One of them repeats everything with the privileges
of csi-proxy.exe. It removes everything that it makes, also after Ctrl+C, but not if it is killed: docs/testing.md says
how to remove that. The output shows models of disks, access lists with SIDs and paths, and no passwords.

`

// The command line. The flags of package testing are beside it.
var (
	dirFlag       = flag.String("dir", "", "a new `folder` on NTFS, for files, mounted folders and, without -disk, virtual disks of 1 GiB; without -dir, but with other flags, the emulated node is asked")
	diskFlag      = flag.String("disk", "", "`numbers` of empty disks, such as 3,4,5,6: EVERYTHING ON THEM IS LOST; questions need up to four at a time")
	shareFlag     = flag.String("share", "", "map this `share`, \\\\SERVER\\SHARE, also with a wrong password, user and domain; the password goes to this server only")
	userFlag      = flag.String("user", "", "the `name` of the user of the share; without it, this machine")
	passwordFlag  = flag.String("password-file", "", "a `file` with the password of the user")
	mappingsFlag  = flag.Int("mappings", 0, "also map \\\\SERVER\\SHARE1 to \\\\SERVER\\SHAREn, which the server must have")
	portalFlag    = flag.String("portal", "", "register this iSCSI portal, `HOST:PORT`; it logs in to no target")
	beforeRestart = flag.Bool("before-restart", false, "only leave a mapping and a mounted folder; then restart the machine")
	afterRestart  = flag.Bool("after-restart", false, "only look what is left of them, and remove them; with the same other flags")
)

// interrupted ends with Ctrl+C. Groups of questions that run fail then, and remove what they made; others are skipped.
var interrupted, interrupt = context.WithCancel(context.Background())

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && runService(m, os.Args[1:]) {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	go func() {
		<-signals
		signal.Stop(signals) // the next one kills
		fmt.Println("Interrupted. Please wait until everything is removed.")
		interrupt()
	}()
	os.Exit(run(m, os.Args[1:]))
}

// run asks the machine that the arguments name. It returns the exit code: 1 if a test failed, 2 if it cannot begin.
func run(m *testing.M, args []string) (code int) {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), introduction)
		own := flag.NewFlagSet("", flag.ContinueOnError)
		flag.VisitAll(func(f *flag.Flag) {
			if !strings.HasPrefix(f.Name, "test.") {
				own.Var(f.Value, f.Name, f.Usage)
			}
		})
		own.PrintDefaults()
	}
	_ = flag.CommandLine.Parse(args) // it exits
	closeMachine, err := open()
	if err != nil {
		fmt.Fprintln(os.Stderr, "csi-proxy-verify:", err)
		return 2
	}
	fmt.Printf("%s asks: %s\n", version.String(), this.about)
	code = m.Run()
	if len(summary) > 0 {
		fmt.Printf("\nSummary of %s on %s\n%s\n", version.String(), this.about, strings.Join(summary, "\n"))
	}
	if interrupted.Err() != nil {
		code = 1
	}
	if err := closeMachine(); err != nil {
		fmt.Fprintln(os.Stderr, "csi-proxy-verify:", err)
		code = 1
	}
	return code
}

// open prepares the machine, and returns what removes the rest that tests have not removed.
func open() (closeMachine func() error, err error) {
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a flag; see -h", flag.Arg(0))
	}
	if *dirFlag == "" {
		flag.Visit(func(f *flag.Flag) {
			if !strings.HasPrefix(f.Name, "test.") {
				err = fmt.Errorf("-%s is for a Windows machine; name a folder on it with -dir, too; see -h", f.Name)
			}
		})
		switch {
		case err != nil:
		case flag.NFlag() == 0:
			err = errors.Join(flag.Set("test.run", "^TestBrief$"), openBrief())
		default:
			this, err = emulated()
		}
		return func() error { return nil }, err
	}
	choice := map[string]string{}
	switch {
	case *beforeRestart && *afterRestart:
		return nil, errors.New("-before-restart and -after-restart are two runs; leave one out")
	case *beforeRestart:
		choice["test.run"] = "^TestRestart_Before$"
	case *afterRestart:
		choice["test.run"] = "^TestRestart_After$"
	}
	if !testing.Verbose() {
		choice["test.v"] = "true"
	}
	for name, value := range choice {
		if err := flag.Set(name, value); err != nil {
			return nil, err
		}
	}
	this = &node{mappings: *mappingsFlag, mapped: map[string]bool{}}
	if err := errors.Join(this.setDisks(), this.setShare(), this.setPortal()); err != nil {
		return nil, err
	}
	return this.openHere()
}

func (n *node) setDisks() error {
	n.fileBacked = *diskFlag == ""
	if n.fileBacked {
		return nil
	}
	for part := range strings.SplitSeq(*diskFlag, ",") {
		number, err := strconv.ParseUint(part, 10, 32)
		if err != nil || slices.Contains(n.named, uint32(number)) {
			return fmt.Errorf("-disk: %q is not the number of a disk, or is named twice", part)
		}
		n.named = append(n.named, uint32(number))
	}
	return nil
}

// share is a share \\server\share with credentials.
type share struct {
	remote, user string
	password     win.Secret
}

// server is that of the share.
func (s *share) server() string { return s.remote[:strings.LastIndexByte(s.remote, '\\')] }

func (n *node) setShare() error {
	if *shareFlag == "" {
		if *userFlag != "" || *passwordFlag != "" || n.mappings > 0 {
			return errors.New("-user, -password-file and -mappings need -share")
		}
		return nil
	}
	path, err := unc.Parse("-share", *shareFlag)
	if err != nil {
		return err
	}
	n.share = &share{remote: path.Share(), user: *userFlag}
	if (*userFlag == "") != (*passwordFlag == "") {
		return errors.New("-user and -password-file belong together; name both, or leave both out")
	}
	if *userFlag == "" {
		return nil // as this machine
	}
	if *passwordFlag, err = filepath.Abs(*passwordFlag); err != nil { // the service of TestInService has another directory
		return err
	}
	content, err := os.ReadFile(*passwordFlag)
	if err != nil {
		return fmt.Errorf("-password-file: %w", err)
	}
	password := strings.TrimRight(strings.TrimPrefix(string(content), "\uFEFF"), "\r\n")
	if password == "" || !utf8.ValidString(password) || strings.ContainsAny(password, "\x00\r\n") {
		return fmt.Errorf("-password-file: %s is not one line of UTF-8; write it so: Set-Content -NoNewline -Encoding utf8 -Path FILE -Value PASSWORD", *passwordFlag)
	}
	n.share.password = win.NewSecret(password)
	return nil
}

func (n *node) setPortal() error {
	if *portalFlag == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(*portalFlag)
	if err != nil {
		return fmt.Errorf("-portal: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("-portal: %w", err)
	}
	n.portal = &win.TargetPortal{Address: host, Port: uint16(number)}
	return nil
}
