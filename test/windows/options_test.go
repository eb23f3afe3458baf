package windows_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

const help = `csi-proxy-verify asks this Windows machine what only Windows can tell, and tests CSI Proxy on it. It removes
everything that it makes. Run it as an administrator, on a machine that may be spoiled, and keep its output:

  csi-proxy-verify -dir C:\verify -virtual-disks > verify.log

It changes no disk, folder, share or portal but these:
  -dir FOLDER            for files and mounted folders, on NTFS; virtual disks need 4 GB
  -virtual-disks         make disks of 1 GiB as files in the folder, or:
  -disk N,N              use these empty disks: EVERYTHING ON THEM IS LOST; questions need up to four at a time
  -share \\SERVER\SHARE  map this share, with -user NAME -password-file FILE, or as this machine
  -mappings N            also map \\SERVER\SHARE1 to \\SERVER\SHAREN, which the server must have
  -portal HOST:PORT      register this iSCSI portal; it logs in to no target
It also rescans storage adapters, mounts the volume of Windows in the folder for a moment, and installs services of
its own. One of them repeats everything with the privileges of csi-proxy.exe.

  -answers FILE          write the answers to this new file; default answers.jsonl
  -test.run REGEXP       run only these tests, for instance TestNewDisk/Q-msr
  -before-restart        leave a mapping and a mounted folder; then restart the machine
  -after-restart         look what is left of them, and remove them
  -cleanup               only remove what a killed run has left in -dir and on -disk; each run begins so
  -emulator              ask the emulated node instead, to compare

Exit codes: 0; 1, a test failed or Ctrl+C; 2, it cannot begin, and nothing was changed.
`

// options are the command line. The flags of package testing are beside them.
type options struct {
	dir          string
	disks        []uint32
	virtualDisks bool
	share        *share
	passwordFile string // with a full path
	mappings     int
	portal       *win.TargetPortal
	answers      string

	beforeRestart, afterRestart bool
	cleanup, emulator           bool
	inside                      bool // this is the service of TestInService
}

// share is a share \\server\share with credentials.
type share struct {
	remote, user string
	password     win.Secret
}

// server is that of the share.
func (s *share) server() string { return s.remote[:strings.LastIndexByte(s.remote, '\\')] }

// parse reads the command line. flags are those of package testing.
func parse(flags *flag.FlagSet, args []string) (o options, err error) {
	var disks, remote, user, portal string
	flags.Init("csi-proxy-verify", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.dir, "dir", "", "")
	flags.StringVar(&disks, "disk", "", "")
	flags.BoolVar(&o.virtualDisks, "virtual-disks", false, "")
	flags.StringVar(&remote, "share", "", "")
	flags.StringVar(&user, "user", "", "")
	flags.StringVar(&o.passwordFile, "password-file", "", "")
	flags.IntVar(&o.mappings, "mappings", 0, "")
	flags.StringVar(&portal, "portal", "", "")
	flags.StringVar(&o.answers, "answers", "", "")
	flags.BoolVar(&o.beforeRestart, "before-restart", false, "")
	flags.BoolVar(&o.afterRestart, "after-restart", false, "")
	flags.BoolVar(&o.inside, "inside", false, "")
	flags.BoolVar(&o.cleanup, "cleanup", false, "")
	flags.BoolVar(&o.emulator, "emulator", asksEmulator(args), "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w; see -h", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag; see -h", flags.Arg(0))
	}
	// A variable of a script that is not set must not turn "only this" into everything.
	own := []string{}
	flags.Visit(func(f *flag.Flag) {
		if f.Usage == "" {
			own = append(own, f.Name)
		}
		if strings.Trim(f.Value.String(), ", ") == "" {
			err = fmt.Errorf("-%s is empty; give it a value, or leave it out", f.Name)
		}
	})
	if err != nil {
		return o, err
	}
	if o.emulator {
		for _, name := range own {
			if name != "emulator" && name != "answers" {
				return o, fmt.Errorf("-%s is for a Windows machine, and the emulated node is asked; leave it out", name)
			}
		}
		return o, nil
	}
	o.answers = cmp.Or(o.answers, "answers.jsonl")
	if o.dir == "" {
		return o, errors.New(`name a folder for files and virtual disks: -dir C:\verify; see -h`)
	}
	if o.dir, err = winpath.Clean(o.dir); err != nil {
		return o, fmt.Errorf("-dir: %w", err)
	}
	if _, ok := winpath.Parent(o.dir); !ok {
		return o, fmt.Errorf("-dir: %s is a whole drive; name a folder on it, such as %sverify", o.dir, o.dir)
	}
	for _, name := range []string{"test.run", "test.skip"} {
		f := flags.Lookup(name)
		if f == nil { // in a test of this function
			continue
		}
		if _, err := regexp.Compile(f.Value.String()); err != nil {
			return o, fmt.Errorf("-%s: %w", name, err)
		}
		if f.Value.String() != "" && (o.beforeRestart || o.afterRestart) {
			return o, fmt.Errorf("-%s: -before-restart and -after-restart choose their tests themselves; leave it out", name)
		}
	}
	if slices.Contains(own, "mappings") && (o.mappings < 1 || o.mappings > 1000) {
		return o, fmt.Errorf("-mappings: %d is not a number from 1 to 1000", o.mappings)
	}
	if o.cleanup {
		for _, name := range own {
			if name != "cleanup" && name != "dir" && name != "disk" {
				return o, fmt.Errorf("-cleanup takes only -dir and -disk; leave -%s out", name)
			}
		}
		return o, o.setDisks(disks)
	}
	if err := errors.Join(o.setDisks(disks), o.setShare(remote, user), o.setPortal(portal)); err != nil {
		return o, err
	}
	return o, o.check()
}

// asksEmulator reports whether the emulated node is asked without -emulator: not on Windows, except by go test ./...,
// which alone sets -test.paniconexit0.
func asksEmulator(args []string) bool {
	return runtime.GOOS != "windows" || slices.Contains(args, "-test.paniconexit0") && !slices.Contains(args, "-dir")
}

// check fails for flags that do not go together.
func (o options) check() error {
	switch {
	case len(o.disks) == 0 && !o.virtualDisks:
		return errors.New("say on which disks: -virtual-disks, or empty disks with -disk; see -h")
	case len(o.disks) > 0 && o.virtualDisks:
		return errors.New("-disk and -virtual-disks exclude each other; leave one out")
	case o.mappings > 0 && o.share == nil:
		return errors.New("-mappings needs -share, whose name they begin with")
	case o.beforeRestart && o.afterRestart:
		return errors.New("-before-restart and -after-restart are two runs; leave one out")
	}
	if _, err := os.Lstat(o.answers); err == nil && !o.afterRestart {
		return fmt.Errorf("%s exists; move it away, or name another file with -answers", o.answers)
	}
	return nil
}

func (o *options) setDisks(text string) error {
	if text == "" {
		return nil
	}
	seen := map[uint32]bool{}
	for part := range strings.SplitSeq(text, ",") {
		number, err := strconv.ParseUint(strings.TrimSpace(part), 10, 32)
		if err != nil {
			return fmt.Errorf("-disk: %q is not the number of a disk", part)
		}
		if seen[uint32(number)] {
			return fmt.Errorf("-disk: disk %d is named twice", number)
		}
		seen[uint32(number)] = true
		o.disks = append(o.disks, uint32(number))
	}
	return nil
}

func (o *options) setShare(remote, user string) error {
	switch {
	case remote == "" && (user != "" || o.passwordFile != ""):
		return errors.New("-user and -password-file are for -share; name the share, or leave them out")
	case remote == "":
		return nil
	case (user == "") != (o.passwordFile == ""):
		return errors.New("-user and -password-file belong together; name both, or leave both out")
	}
	path, err := unc.Parse("-share", remote)
	if err != nil {
		return err
	}
	o.share = &share{remote: path.Share(), user: user}
	if o.passwordFile == "" {
		return nil // as this machine
	}
	if o.passwordFile, err = filepath.Abs(o.passwordFile); err != nil {
		return fmt.Errorf("-password-file: %w", err)
	}
	file, err := os.Open(o.passwordFile)
	if err != nil {
		return fmt.Errorf("-password-file: %w; name a file with the password", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxPassword))
	if err != nil {
		return fmt.Errorf("-password-file: %w", err)
	}
	password := strings.TrimRight(strings.TrimPrefix(string(content), "\uFEFF"), "\r\n")
	if password == "" || len(content) == maxPassword || !utf8.ValidString(password) || strings.ContainsAny(password, "\x00\r\n") {
		return fmt.Errorf("-password-file: %s is not one line of UTF-8; write it so: Set-Content -NoNewline -Encoding utf8 -Path FILE -Value PASSWORD", o.passwordFile)
	}
	o.share.password = win.NewSecret(password)
	return nil
}

// maxPassword is more than any password has.
const maxPassword = 4 << 10

// onDisks are the flags that name the disks.
func (o options) onDisks() []string {
	if o.virtualDisks {
		return []string{"-virtual-disks"}
	}
	var numbers []string
	for _, number := range o.disks {
		numbers = append(numbers, strconv.FormatUint(uint64(number), 10))
	}
	return []string{"-disk", strings.Join(numbers, ",")}
}

// forRestart are the flags that both runs around a restart need.
func (o options) forRestart() string {
	flags := o.onDisks()
	if o.share != nil {
		flags = append(flags, "-share", o.share.remote)
	}
	if o.mappings > 0 {
		flags = append(flags, "-mappings", strconv.Itoa(o.mappings))
	}
	return strings.Join(flags, " ")
}

func (o *options) setPortal(text string) error {
	if text == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("-portal: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || host == "" {
		return fmt.Errorf("-portal: %q is not HOST:PORT", text)
	}
	o.portal = &win.TargetPortal{Address: host, Port: uint16(number)}
	return nil
}

// choose sets the flags of package testing.
func (o options) choose() error {
	switch {
	case o.beforeRestart:
		return flag.Set("test.run", "^TestRestart_Before$")
	case o.afterRestart:
		return flag.Set("test.run", "^TestRestart_After$")
	case o.emulator: // as far as it asks this machine, leave it out
		if flag.Lookup("test.skip").Value.String() == "" {
			return flag.Set("test.skip", "^(TestLocal|TestProcess|TestRestrictions|TestInService)")
		}
		return nil
	}
	return flag.Set("test.v", "true")
}

// plan says what a run does to the machine.
func (o options) plan() string {
	var b strings.Builder
	fmt.Fprintf(&b, "csi-proxy-verify makes files, links and mounted folders in %s, and services of its own.\n", o.dir)
	for _, number := range o.disks {
		fmt.Fprintf(&b, "It partitions and formats DISK %d: EVERYTHING ON IT IS LOST.\n", number)
	}
	if o.virtualDisks {
		b.WriteString("It makes virtual disks of 1 GiB there, attaches, partitions, formats, grows, copies and detaches them.\n")
	}
	if o.share != nil {
		fmt.Fprintf(&b, "It maps %s for all users. It also tries its server with a wrong password, with another user and domain, and\n"+
			"for a share that it does not have. Your password goes to this server only.\n", o.share.remote)
	}
	if o.portal != nil {
		fmt.Fprintf(&b, "It registers the iSCSI portals %s and 127.0.0.1:9.\n", o.portal)
	}
	b.WriteString("It removes everything it makes. Answers show models of disks, access lists with SIDs and paths, and no passwords.\n\n")
	return b.String()
}
