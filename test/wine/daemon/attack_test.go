//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/test/attack"
)

// attackRole is an argument that makes the test binary an attacker. The number of the attack follows.
const attackRole = "-play-attack"

// attackTime is how long an attack lasts.
const attackTime = 10 * time.Second

func playAttack(number string) {
	n, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), attackTime)
	defer cancel()
	path := client.PipePath("filesystem", apiversion.NewVersionOrPanic("v1"))
	fmt.Println(attack.Attacks[n].Run(ctx, func(ctx context.Context) (net.Conn, error) { return winio.DialPipeContext(ctx, path) })) //nolint:forbidigo // for the test that has started it
}

// TestAttack: the attacks that took gigabytes or every place on a pipe. Other clients are served, old and
// new ones, and the daemon stays small.
func TestAttack(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range attack.Attacks[:3] {
		t.Run(a.Name, func(t *testing.T) {
			daemon, c := start(t), connect(t)
			if err := ask(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			before, most, calls := daemon.resident(), 0, 0
			attacker := launch(t, executable, attackRole, strconv.Itoa(i))
			for attacking := true; attacking; calls++ {
				select {
				case <-attacker.done:
					attacking = false
				default:
				}
				if calls%50 == 0 {
					most = max(most, daemon.resident())
					if err := ask(t.Context(), connect(t)); err != nil {
						t.Errorf("a new client: %v", err)
					}
				}
				if err := ask(t.Context(), c); err != nil {
					t.Errorf("another client: %v", err)
				}
			}
			_, count := attacker.exit()
			figure(t, "%s: %s times; %d calls of others; memory %d, then %d MB", a.Name, strings.TrimSpace(count), calls, before>>10, most>>10)
			if most > 200<<10 {
				t.Errorf("the daemon has %d MB", most>>10)
			}
		})
	}
}
