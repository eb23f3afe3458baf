package machine

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/original/powershell"
)

// Cmd is that of package exec, for PowerShell on this machine.
type Cmd struct {
	Env  []string
	args []string
}

// Command is that of package exec. The machine has no other program than PowerShell.
func Command(name string, args ...string) *Cmd {
	return &Cmd{args: append([]string{name}, args...)}
}

func (c *Cmd) String() string { return strings.Join(c.args, " ") }

// Output is that of package exec.
func (c *Cmd) Output() ([]byte, error) { return c.CombinedOutput() }

// CombinedOutput is that of package exec. What PowerShell says about an error is the output, and
// the error says only that it failed.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	output, err := here.powershell(c.args, c.Env)
	if err != nil {
		return []byte(output + err.Error() + "\r\n"), errors.New("exit status 1")
	}
	return []byte(output), nil
}

// commandTime is the time of one call of PowerShell on the node's clock. It takes seconds to start,
// and volumes appear meanwhile: the tests rely on that.
const commandTime = 5 * time.Second

func (m *machine) powershell(args, env []string) (string, error) {
	if len(args) != 3 || args[0] != "powershell" {
		return "", fmt.Errorf("%q: the machine runs only a command or a file by powershell", args)
	}
	source := args[2]
	switch args[1] {
	case "/c":
	case "-File":
		text, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		source = string(text)
	default:
		return "", fmt.Errorf("powershell has no option %s here", args[1])
	}
	script, err := powershell.Parse(source)
	if err != nil {
		return "", err
	}
	values, err := m.commands.Run(script, append(env, "COMPUTERNAME="+hostname))
	if err != nil {
		return "", err
	}
	return powershell.Print(values), m.node.Sleep(background(), commandTime)
}

// Get is that of package http, for the metrics at the address that the tests know.
func Get(url string) (*http.Response, error) {
	path, ok := strings.CutPrefix(url, "http://localhost:8888/")
	if !ok {
		return nil, fmt.Errorf("get %s: the machine serves only metrics", url)
	}
	recorder := httptest.NewRecorder()
	here.metrics.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/"+path, nil))
	return recorder.Result(), nil
}
