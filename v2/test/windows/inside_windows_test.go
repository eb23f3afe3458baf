package windows_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

const (
	// insideCommand is the first argument of this program as a service that repeats the tests; its name is the second,
	// the file for its output the third, and flags follow. It works in a folder of this name in that of the run.
	insideCommand = "inside"
	// strictCommand is the same with strict handle checks, which csi-proxy.exe does not have by default.
	strictCommand = "inside-strict"
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
		err = svc.Run(args[1], &inside{m, args[0] == strictCommand, args[2:]})
	default:
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "csi-proxy-verify:", err)
		os.Exit(2)
	}
	return true
}

// inside runs the tests in a service, restricted as csi-proxy.exe is.
type inside struct {
	tests  *testing.M
	strict bool
	args   []string // the file for the output, and flags
}

// Execute passes the exit code to the service manager.
func (i *inside) Execute(_ []string, requests <-chan svc.ChangeRequest, states chan<- svc.Status) (specific bool, exit uint32) {
	states <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	ended := make(chan int, 1)
	go func() { ended <- i.run() }()
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
				interrupt()
			default: // it accepts no others
			}
		}
	}
}

func (i *inside) run() (code int) {
	log, err := os.OpenFile(i.args[0], os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 2
	}
	os.Stdout, os.Stderr = log, log
	if _, err := winapi.SetStandardHandle(winapi.StandardError, log.Fd()); err != nil { // of the runtime, such as a bad handle
		return 2
	}
	if restrict(); i.strict {
		restrictions["Q-strict-handles"] = winapi.StrictHandleChecks().TurnOn()
	}
	fmt.Println("This process is restricted as csi-proxy.exe is, but for what Windows refused:", restrictions)
	return run(i.tests, i.args[1:])
}

// restrict takes from this process what csi-proxy.exe gives up.
func restrict() {
	libraries := winapi.SystemLibrariesOnly()
	missing, privileges := winapi.KeepPrivileges()
	if len(missing) > 0 {
		privileges = fmt.Errorf("this process does not have %s", missing)
	}
	var lacking []string
	for _, mitigation := range winapi.Mitigations() {
		if err := mitigation.TurnOn(); err != nil {
			lacking = append(lacking, mitigation.Name+": "+err.Error())
		}
	}
	var mitigations error
	if len(lacking) > 0 {
		mitigations = fmt.Errorf("Windows lacks %q", lacking)
	}
	restrictions = map[string]error{"Q-privileges": privileges, "Q-mitigations-com": mitigations, "Q-dll-search": libraries}
}

// TestInService repeats all tests in a service with the privileges, the search for libraries and the mitigations of
// csi-proxy.exe. Its log has the log of the service.
func TestInService(t *testing.T) {
	skipOnEmulator(t)
	if restrictions != nil {
		t.Skip("this is the service")
	}
	g := newGroup(t)
	exitCode, output := g.repeatInside(insideCommand)
	failed := "none"
	if exitCode != 0 {
		names := regexp.MustCompile(`--- FAIL: \S+`).FindAllString(output, -1)
		failed = fmt.Sprintf("exit code %d %s", exitCode, strings.Join(names, ", "))
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
		exitCode, output := g.repeatInside(strictCommand, "-test.run=^TestConformance$")
		a.fact("Windows ended the process", exitCode == uint32(windows.ERROR_PROCESS_ABORTED))
		a.fact("its log has 0xc0000008", strings.Contains(strings.ToLower(output), "0xc0000008"))
		a.measured("exit code", exitCode)
	})
}

// repeatInside runs tests in a service, and returns how it ended and what it said.
func (g *group) repeatInside(command string, flags ...string) (exitCode uint32, output string) {
	g.Helper()
	exitCode = g.runInside(fmt.Sprintf(servicePrefix+"%d-%s", os.Getpid(), command), command, flags)
	log, err := os.ReadFile(g.path(command + ".log"))
	g.must(err)
	g.Log(strings.ReplaceAll("the service said:\n"+string(log), "\n", "\n| ")) // so that no line is taken for one of this run
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
	args := []string{program, command, name, g.path(command + ".log"), "-test.v", "-test.timeout=2h", fmt.Sprintf("-test.short=%t", testing.Short())}
	flag.Visit(func(f *flag.Flag) { // the same, in a folder of its own
		if !strings.HasPrefix(f.Name, "test.") && f.Name != "dir" && f.Name != "mappings" {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	args = append(append(args, "-dir="+g.path(command)), flags...)
	for i, arg := range args {
		args[i] = windows.EscapeArg(arg)
	}
	installed, err := manager.Create(name, scm.Config{Command: strings.Join(args, " "), Start: scm.Manual, DisplayName: name}) // the one before may be going still
	if err != nil && !errors.Is(err, scm.ErrUnsupported) {
		g.Fatal(err)
	}
	defer installed.Close()
	defer removeService(g.T, name)
	if err := installed.SetServiceSID(true); err != nil && !errors.Is(err, scm.ErrUnsupported) {
		g.Fatal(err)
	}
	g.must(installed.Start())
	limit := win.Backoff{First: 100 * time.Millisecond, Longest: time.Second, Limit: 2 * time.Hour}
	ended, err := win.Poll(interrupted, machine, limit, func(time.Duration) (bool, error) {
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

// TestRestrictions asks what this process may do. In the service of TestInService that is little.
func TestRestrictions(t *testing.T) {
	skipOnEmulator(t)
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
