package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/thismachine"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// options are the command line.
type options struct {
	machine           thismachine.Config
	only              []string
	out               string
	yes, list, asJSON bool
	cleanup, version  bool
	questionsOnly     bool
}

const usage = `csi-proxy-verify asks this Windows machine what only Windows can tell, and writes the answers to a zip.
Run it as an administrator on a scratch machine.

Usage:
  csi-proxy-verify -dir C:\verify          say what would be done
  csi-proxy-verify -dir C:\verify -yes     do it
  csi-proxy-verify -dir C:\verify -cleanup remove what a killed run has left
  csi-proxy-verify -list                   list the questions; needs no rights

Exit codes:
  0  the zip is written, and nothing in it failed
  1  there is no zip, something is left behind, or the run was interrupted
  2  the command line is wrong, or -yes is missing; nothing was changed
  3  the zip is written, and has questions or cases that failed

Flags:
`

func (o *options) parse(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("csi-proxy-verify", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error, without the help text
	flags.Usage = func() {}
	var only, disks, share, user, passwordFile, portal string
	flags.StringVar(&o.machine.Dir, "dir", "", "`folder` on NTFS for virtual disks, files and the zip; 4 GB must be free")
	flags.BoolVar(&o.yes, "yes", false, "change this machine as announced")
	flags.BoolVar(&o.cleanup, "cleanup", false, "only remove what a killed run has left in -dir")
	flags.BoolVar(&o.list, "list", false, "list the questions, and why some are not asked")
	flags.BoolVar(&o.asJSON, "json", false, "with -list: print JSON")
	flags.StringVar(&only, "only", "", "ask only these questions, `IDs` separated by commas, and run no suites")
	flags.BoolVar(&o.questionsOnly, "questions-only", false, "do not run the conformance suite and the tests")
	flags.StringVar(&disks, "disks", "", "use these empty disks instead of virtual disks, `numbers` separated by commas; everything on them is lost")
	flags.StringVar(&share, "share", "", "map this `share`, such as \\\\server\\share, for the SMB questions")
	flags.StringVar(&user, "user", "", "`user` of -share, such as DOMAIN\\user")
	flags.StringVar(&passwordFile, "password-file", "", "`file` with the password of -user, as UTF-8, or as UTF-16 with a byte order mark")
	flags.StringVar(&portal, "portal", "", "register this iSCSI `portal`, such as 10.0.0.10:3260, for the iSCSI questions")
	flags.BoolVar(&o.machine.Names, "names", false, "keep names, serial numbers and bytes of control codes in the recorded calls; without it they are hashed or left out")
	flags.StringVar(&o.out, "out", "", "zip `file` to write, which must not exist; by default in -dir")
	flags.BoolVar(&o.version, "version", false, "print the version")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; see -help", err)
	}
	o.machine.Program = version.String()
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag; see -help", flags.Arg(0))
	}
	// A variable of a script that is not set must not turn "only this" into everything.
	var empty error
	flags.Visit(func(f *flag.Flag) {
		if strings.Trim(f.Value.String(), ", ") == "" {
			empty = fmt.Errorf("-%s is empty; give it a value, or leave it out", f.Name)
		}
	})
	if empty != nil {
		return empty
	}
	if o.list || o.version {
		return alone(flags, "-list and -version take", "list", "json", "version")
	}
	if o.asJSON {
		return errors.New("-json is for -list; add it, or leave -json out")
	}
	if o.machine.Dir == "" {
		return errors.New(`name a folder for disks and files: -dir C:\verify; see -help`)
	}
	dir, err := winpath.Clean(o.machine.Dir)
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	o.machine.Dir = dir
	if _, ok := winpath.Parent(dir); !ok {
		return fmt.Errorf("-dir: %s is a whole drive; name a folder on it, such as %sverify", dir, dir)
	}
	if o.cleanup {
		return alone(flags, "-cleanup takes", "cleanup", "dir")
	}
	return errors.Join(o.setOnly(only), o.setDisks(disks), o.setShare(share, user, passwordFile), o.setPortal(portal))
}

// alone fails if flags that do one thing have company that they would ignore.
func alone(flags *flag.FlagSet, they string, company ...string) (err error) {
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains(company, f.Name) {
			err = fmt.Errorf("%s no -%s; leave it out", they, f.Name)
		}
	})
	return err
}

func (o *options) setOnly(text string) error {
	for id := range strings.SplitSeq(text, ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		q, ok := question.Find(id)
		switch {
		case !ok:
			return fmt.Errorf("-only: there is no question %s; see -list", id)
		case q.NotAsked != "":
			return fmt.Errorf("-only: %s is not asked: %s", id, q.NotAsked)
		case verify.ByCases(id):
			return fmt.Errorf("-only: %s is answered by the conformance suite; leave -only out", id)
		case !slices.Contains(o.only, id):
			o.only = append(o.only, id)
		}
		o.questionsOnly = true
	}
	return nil
}

func (o *options) setDisks(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		number, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return fmt.Errorf("-disks: %q is not the number of a disk", part)
		}
		if slices.Contains(o.machine.Disks, uint32(number)) {
			return fmt.Errorf("-disks: disk %d is named twice", number)
		}
		o.machine.Disks = append(o.machine.Disks, uint32(number))
	}
	return nil
}

func (o *options) setShare(remote, user, passwordFile string) error {
	if remote == "" {
		if user != "" || passwordFile != "" {
			return errors.New("-user and -password-file are for -share; name the share, or leave them out")
		}
		return nil
	}
	share, err := unc.Parse("-share", remote)
	if err != nil {
		return err
	}
	o.machine.Share = &verify.Share{Remote: share.Share(), User: user}
	switch {
	case (user == "") != (passwordFile == ""):
		return errors.New("-user and -password-file belong together; name both, or leave both out")
	case passwordFile == "":
		return nil // as this machine
	}
	content, err := os.ReadFile(passwordFile)
	if err != nil {
		return fmt.Errorf("-password-file: %w", err)
	}
	password, err := decodePassword(content)
	if err != nil {
		return fmt.Errorf("-password-file: %s %w", passwordFile, err)
	}
	o.machine.Share.Password = win.NewSecret(password)
	return nil
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
	switch {
	case err != nil || number == 0:
		return fmt.Errorf("-portal: %q is not a port", port)
	case host == "":
		return fmt.Errorf("-portal: %q names no server", text)
	}
	o.machine.Portal = &win.TargetPortal{Address: host, Port: uint16(number)}
	return nil
}
