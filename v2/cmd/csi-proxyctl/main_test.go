//go:build unix

// These tests need signals and Unix sockets.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// cleansUp is a program that never ends its clean-up.
const cleansUp = "cleans up"

// TestMain lets the test binary run as csi-proxyctl, or as a program that is interrupted as it is.
func TestMain(m *testing.M) {
	switch os.Getenv("CSI_PROXYCTL_TEST_MAIN") {
	case "":
	case cleansUp:
		interrupted := untilInterrupt()
		os.Stdout.WriteString("works\n")
		<-interrupted.Done()
		os.Stdout.WriteString("cleans up\n")
		select {}
	default:
		main()
	}
	os.Exit(m.Run())
}

// program returns the program as a process, and its output.
func program(t testing.TB, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "CSI_PROXYCTL_TEST_MAIN=1")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	return cmd, &output
}

func startNode(t testing.TB) *winsim.Node {
	t.Helper()
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	serve.Start(t, node)
	return node
}

func TestProcess_Exits(t *testing.T) {
	startNode(t)
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"disk list":                      {command.ExitOK, "WINSIM0003"},
		"--version":                      {command.ExitOK, "csi-proxyctl "},
		"disk stats 99":                  {command.ExitFailure, "(NotFound)"},
		"disk stats":                     {command.ExitUsage, "--help"},
		"disk list --endpoint-dir /none": {command.ExitUnreachable, "(Unavailable)"},
		"doctor --log-file /none":        {command.ExitProblems, "/none"},
		"smb map x --user u":             {command.ExitUsage, "--password-file"},
	} {
		t.Run(args, func(t *testing.T) {
			cmd, output := program(t, strings.Fields(args)...)
			_ = cmd.Run() // the test checks the exit code
			if got := cmd.ProcessState.ExitCode(); got != want.code || !strings.Contains(output.String(), want.text) {
				t.Errorf("exit code %d, want %d\n%s", got, want.code, output)
			}
		})
	}
}
