package windows_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

const (
	// insideCommand is the first argument of this program as a service that repeats the tests; its name is the second,
	// and flags follow.
	insideCommand = "inside"
	// strictCommand is the same with strict handle checks, which csi-proxy.exe does not have by default.
	strictCommand = "inside-strict"
	// insideFolder is where that service works, in the folder of the run, and insideLog its output.
	insideFolder = "service"
	insideLog    = "service.log"
)

// runService runs this program as a service of its own, if the arguments say so.
func runService(m *testing.M, args []string) bool {
	var err error
	switch args[0] {
	case idleCommand:
		err = serveIdle(args[1:])
	case insideCommand, strictCommand:
		if len(args) < 3 {
			err = errors.New("only the service manager starts this")
			break
		}
		err = svc.Run(args[1], &inside{m.Run, args[0] == strictCommand, args[2:]})
	default:
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "csi-proxy-verify:", err)
		os.Exit(exitRefused)
	}
	return true
}

// inside runs the tests in a service, restricted as csi-proxy.exe is.
type inside struct {
	tests  func() int
	strict bool
	args   []string // the file for the output, and flags
}

// Execute passes the exit code to the service manager.
func (i *inside) Execute(_ []string, requests <-chan svc.ChangeRequest, states chan<- svc.Status) (specific bool, exit uint32) {
	states <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- i.run(ctx) }()
	for {
		select {
		case code := <-ended:
			return code != 0, uint32(code)
		case request := <-requests:
			switch request.Cmd {
			case svc.Interrogate:
				states <- request.CurrentStatus
			case svc.Stop:
				states <- svc.Status{State: svc.StopPending}
				cancel()
			default: // it accepts no others
			}
		}
	}
}

func (i *inside) run(ctx context.Context) (code int) {
	log, err := os.OpenFile(i.args[0], os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return exitRefused
	}
	os.Stdout, os.Stderr = log, log
	if _, err := winapi.SetStandardHandle(winapi.StandardError, log.Fd()); err != nil { // of the runtime, such as a bad handle
		return exitRefused
	}
	if err := winapi.SystemLibrariesOnly(); err != nil {
		fmt.Println("The search for libraries is not restricted:", err)
	}
	missing, err := winapi.KeepPrivileges()
	fmt.Println("The process keeps the privileges of csi-proxy.exe, without", missing, err)
	mitigations := winapi.Mitigations()
	if i.strict {
		mitigations = append(mitigations, winapi.StrictHandleChecks())
	}
	for _, mitigation := range mitigations {
		if err := mitigation.TurnOn(); err != nil {
			fmt.Printf("Windows lacks the mitigation %s: %v\n", mitigation.Name, err)
		}
	}
	if code, err = run(ctx, i.tests, i.args[1:]); err != nil {
		fmt.Println("csi-proxy-verify:", err)
	}
	return code
}

// TestInService repeats all tests in a service with the privileges, the search for libraries and the mitigations of
// csi-proxy.exe. What it answers has "service" in answers.jsonl.
func TestInService(t *testing.T) {
	if this.options.inside {
		t.Skip("this is the service")
	}
	g := newGroup(t)
	exitCode, _ := g.repeatInside(insideCommand)
	answered := filepath.Join(g.folder, insideFolder+".jsonl")
	failed := passOn(t, answered)
	if exitCode != 0 {
		t.Errorf("the service ended with exit code %d (%#x)", exitCode, exitCode)
	}
	// The process has the privileges that csi-proxy.exe keeps. Then through the service: create a link, rescan, format by
	// MSFT_Volume and Win32_Volume, resize, map and unmap a share.
	g.ask("Q-privileges", func(a *answer) { a.fact("tests that failed in it", failed) })
	// With the mitigations, WMI and iSCSI calls work, smphost starts on demand, and formatting succeeds.
	g.ask("Q-mitigations-com", func(a *answer) { a.fact("tests that failed in it", failed) })
	// WMI works although libraries are loaded from the directory of Windows only: format a volume.
	g.ask("Q-dll-search", func(a *answer) { a.fact("tests that failed in it", failed) })
	// With -strict-handle-checks, the conformance suite does not make Windows end the process with STATUS_INVALID_HANDLE
	// (0xC0000008), of which the service manager says ERROR_PROCESS_ABORTED (1067).
	g.ask("Q-strict-handles", func(a *answer) {
		a.must(os.Remove(answered))
		exitCode, output := g.repeatInside(strictCommand, "-test.run=^TestConformance$")
		a.fact("Windows ended the process", exitCode == uint32(windows.ERROR_PROCESS_ABORTED))
		a.fact("its log has 0xc0000008", strings.Contains(strings.ToLower(output), "0xc0000008"))
		a.measured("exit code", exitCode)
	})
}

// repeatInside runs tests in a service, and returns how it ended and what it said.
func (g *group) repeatInside(command string, flags ...string) (exitCode uint32, output string) {
	g.Helper()
	name := fmt.Sprintf(servicePrefix+"%d-%s", time.Now().Unix(), command)
	g.must(g.journal.add(entry{Kind: serviceKind, Name: name}))
	exitCode = g.runInside(name, command, flags)
	g.journal.remove(entry{Kind: serviceKind, Name: name})
	log, err := os.ReadFile(filepath.Join(g.folder, insideLog))
	g.must(err)
	g.Logf("the service said:\n%s", log)
	return exitCode, string(log)
}

// runInside installs this program as a service, as csi-proxyctl service install does, and waits until it ends.
func (g *group) runInside(name, command string, flags []string) (exitCode uint32) {
	g.Helper()
	manager, err := scm.Connect()
	g.must(err)
	defer manager.Close()
	program, err := os.Executable()
	g.must(err)
	dir := filepath.Join(g.folder, insideFolder)
	args := slices.Concat([]string{program, command, name, filepath.Join(g.folder, insideLog)}, g.options.repeated(dir), flags)
	for i, arg := range args {
		args[i] = windows.EscapeArg(arg)
	}
	installed, err := manager.Create(name, scm.Config{Command: strings.Join(args, " "), Start: scm.Manual, DisplayName: "csi-proxy-verify"})
	if err != nil && !errors.Is(err, scm.ErrUnsupported) {
		g.Fatal(err)
	}
	defer installed.Close()
	defer func() {
		if err := removeService(context.WithoutCancel(g.Context()), name); err != nil {
			g.Errorf("service %s is left behind: %v", name, err)
		}
	}()
	if err := installed.SetServiceSID(true); err != nil && !errors.Is(err, scm.ErrUnsupported) {
		g.Fatal(err)
	}
	g.must(installed.Start())
	limit := win.Backoff{First: 100 * time.Millisecond, Longest: time.Second, Limit: 2 * time.Hour}
	ended, err := win.Poll(g.T.Context(), local.Machine(), limit, func(time.Duration) (bool, error) {
		status, err := installed.Status()
		exitCode = status.ExitCode
		return status.State == scm.Stopped, err
	})
	g.must(err)
	if !ended {
		g.Fatalf("the service does not end")
	}
	return exitCode
}

// repeated are the flags of the service that repeats a run: the same, with files of its own.
func (o options) repeated(dir string) []string {
	flags := []string{"-test.v", "-inside", "-dir", dir, "-answers", dir + ".jsonl", "-test.timeout=2h"}
	flags = append(flags, o.onDisks()...)
	if o.share != nil {
		flags = append(flags, "-share", o.share.remote)
		if o.passwordFile != "" {
			flags = append(flags, "-user", o.share.user, "-password-file", o.passwordFile)
		}
	}
	if o.portal != nil {
		flags = append(flags, "-portal", o.portal.String())
	}
	return flags
}

// passOn adds the answers of the service to those of this run, and names the tests that failed in it.
func passOn(t *testing.T, path string) (failed string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Errorf("the service has written no answers: %v", err)
		return "no answers"
	}
	defer file.Close()
	var names []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Errorf("an answer of the service: %v", err)
			continue
		}
		if l.Failed != "" && !slices.Contains(names, l.Failed) {
			names = append(names, l.Failed)
		}
		l.Service = true
		answers.write(l)
	}
	require.NoError(t, lines.Err(), "the answers of the service:")
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// TestRestrictions asks what this process may do. In the service of TestInService that is little.
func TestRestrictions(t *testing.T) {
	g := newGroup(t)
	// Get-ProcessMitigation shows what the daemon says at its start, on 2019, 2022 and 2025, as a service and in a
	// HostProcess container.
	g.ask("Q-mitigations", func(a *answer) {
		query := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessMitigationPolicy")
		for _, policy := range []struct {
			name   string
			number uintptr
		}{
			{"ProcessChildProcessPolicy", 13},
			{"ProcessImageLoadPolicy", 10},
			{"ProcessExtensionPointDisablePolicy", 6},
			{"ProcessStrictHandleCheckPolicy", 3},
		} {
			if err := query.Find(); err != nil {
				a.Skip(err)
			}
			var flags uint32 // all structures of policies are one DWORD of bits
			ok, _, err := query.Call(uintptr(windows.CurrentProcess()), policy.number, uintptr(unsafe.Pointer(&flags)), unsafe.Sizeof(flags))
			if ok == 0 {
				a.measured(policy.name, winapi.Error(err))
				continue
			}
			a.measured(policy.name, fmt.Sprintf("%#x", flags))
		}
	})
	g.ask("Q-privileges", func(a *answer) {
		held, err := privileges()
		a.must(err)
		a.measured("privileges", strings.Join(held, ", "))
	})
}

// privileges names the privileges of this process.
func privileges() (names []string, err error) {
	token := windows.GetCurrentProcessToken()
	var size uint32
	_ = windows.GetTokenInformation(token, windows.TokenPrivileges, nil, 0, &size)
	buffer := make([]byte, max(size, 1))
	if err := windows.GetTokenInformation(token, windows.TokenPrivileges, &buffer[0], size, &size); err != nil {
		return nil, winapi.Error(err)
	}
	lookUp := windows.NewLazySystemDLL("advapi32.dll").NewProc("LookupPrivilegeNameW")
	for _, p := range (*windows.Tokenprivileges)(unsafe.Pointer(&buffer[0])).AllPrivileges() {
		var text [64]uint16
		length := uint32(len(text))
		if ok, _, err := lookUp.Call(0, uintptr(unsafe.Pointer(&p.Luid)), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&length))); ok == 0 {
			return nil, winapi.Error(err)
		}
		names = append(names, windows.UTF16ToString(text[:]))
	}
	slices.Sort(names)
	return names, nil
}
