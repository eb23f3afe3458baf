package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// manyVolumes is a node with a volume on each of many disks, and a link to each.
func manyVolumes(t *testing.T, n int) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	for i := range n {
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
			{Volume: &winsim.Volume{ID: fmt.Sprintf("00000000-0000-0000-0000-%012d", i+1), Used: winsim.Size(i%10) * 100 * winsim.MiB}},
		}})
	}
	emulated, err := winsim.New(model)
	require.NoError(t, err)
	return emulated
}

// looker describes a node as Serve does.
func looker(t *testing.T, emulated *winsim.Node) func(context.Context) (*node.Description, error) {
	t.Helper()
	machine, err := node.NewOn(emulated, node.WorkingDirs(`C:\var\lib\kubelet`))
	require.NoError(t, err)
	t.Cleanup(emulated.Reboot) // it ends what a disk or a fault holds
	return func(ctx context.Context) (*node.Description, error) {
		return machine.Describe(ctx, node.Links, node.Shares)
	}
}

func sum(calls map[string]int) (total int) {
	for _, n := range calls {
		total += n
	}
	return total
}

// scrape returns what Prometheus gets.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

// TestDescribe_Calls: however often metrics are read, a node is described once in 30 s.
// A node whose metrics are not read is described once in a minute.
func TestDescribe_Calls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emulated := manyVolumes(t, 50)
		look := looker(t, emulated)
		emulated.ResetCalls()
		if _, err := look(t.Context()); err != nil {
			t.Fatal(err)
		}
		once := sum(emulated.Calls())
		if once < 50 {
			t.Fatalf("a description makes %d calls, so this test shows nothing", once)
		}
		m := metrics.New(metrics.Config{Storage: true})
		emulated.ResetCalls()
		stop := background(t, func(ctx context.Context) { (&storage{observer: m}).describe(ctx, look) })
		synctest.Wait()
		expect := func(when string, descriptions int) {
			t.Helper()
			if got := sum(emulated.Calls()); got != descriptions*once {
				t.Errorf("%s: %d calls, want those of %d descriptions, %d each", when, got, descriptions, once)
			}
		}
		expect("at start", 1)
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		expect("after an hour without a reader", 60)
		time.Sleep(time.Second)
		for range 580 { // 87 s
			scrape(t, m)
			time.Sleep(150 * time.Millisecond)
		}
		synctest.Wait()
		expect("after 87 s with many readers", 60+3)
		if text := scrape(t, m); !strings.Contains(text, "csi_proxy_storage_disks{state=\"online\"} 54\n") {
			t.Error(text)
		}
		stop()
	})
}

// TestDescribe_Hangs: while a disk hangs, a scrape answers at once with the last description and its age.
func TestDescribe_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emulated := manyVolumes(t, 2)
		require.NoError(t, emulated.SetDiskHealth(1, winsim.DiskPredicts))
		look := looker(t, emulated)
		m := metrics.New(metrics.Config{Storage: true})
		time.Sleep(time.Minute)
		text := scrape(t, m)
		if n := strings.Count(text, "\ncsi_proxy_storage_"); n != 1 || !strings.Contains(text, "csi_proxy_storage_description_age_seconds 60\n") {
			t.Errorf("%d values before the first description, want its age only:\n%s", n, text)
		}
		stop := background(t, func(ctx context.Context) { (&storage{observer: m}).describe(ctx, look) })
		synctest.Wait()
		if _, err := emulated.Inject(winsim.Fault{Object: `\\?\scsi*000002*`, Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(describePause)
		synctest.Wait() // the second description waits for the disk
		time.Sleep(2 * time.Second)
		before := time.Now()
		text = scrape(t, m)
		if waited := time.Since(before); waited != 0 {
			t.Errorf("a scrape waited %v for the disk", waited)
		}
		for _, want := range []string{`csi_proxy_storage_disks{state="unknown"} 0`, "csi_proxy_storage_description_age_seconds 32"} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		time.Sleep(describePause)
		synctest.Wait()
		for _, want := range []string{`csi_proxy_storage_disks{state="unknown"} 1`, `csi_proxy_storage_problems{kind="no-answer",severity="will-hurt"} 1`, `csi_proxy_storage_problems{kind="failing-disk",severity="will-hurt"} 1`} {
			if text = scrape(t, m); !strings.Contains(text, want+"\n") {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		stop()
	})
}

// TestDescribe_Events: when a disk hangs that a pod uses there is an event, and one when it answers again. A look that
// got no answer, and the next one did, is neither an event nor a pod that is hurt.
func TestDescribe_Events(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := winsim.Broken()
		model.Files = append(model.Files, winsim.File{Path: `C:\var\log\pods\shop_web-0_00000000-0000-4000-a000-000000000001`})
		emulated, err := winsim.New(model)
		require.NoError(t, err)
		var events []string
		s := &storage{event: func(hurts bool, text string) {
			if strings.Contains(text, "disk 1:") {
				events = append(events, fmt.Sprintf("%v %s", hurts, text))
			}
		}}
		m := metrics.New(metrics.Config{Storage: true})
		s.observer = m
		look := looker(t, emulated)
		stop := background(t, func(ctx context.Context) { s.describe(ctx, look) })
		time.Sleep(30 * time.Second) // halfway to the next look
		hurt := func(when string, want int) {
			t.Helper()
			found, err := look(t.Context())
			require.NoError(t, err)
			asked := grpcapi.WireNode(found) // as csi-proxyctl does
			s.annotate(asked)
			text, counted := "", "csi_proxy_storage_problems{kind=\"no-answer\",severity=\"hurts\"} 1\n" // both disks, of one bus
			for _, p := range problem.Find(asked) {
				if p.Is(problem.Object{Type: problem.Disk, ID: "1"}) {
					text += string(p.Severity) + " " + p.Text
				}
			}
			wantText := map[int]string{1: "will-hurt it does not answer: it cannot be read: no answer in time", 2: "hurts it hangs: it cannot be read: no answer in time"}[want]
			if metrics := scrape(t, m); text != wantText || !strings.Contains(metrics, counted) {
				t.Errorf("%s: %q, want %q and %s\n%s", when, text, wantText, counted, metrics)
			}
		}
		time.Sleep(time.Minute)
		require.NoError(t, emulated.HangDisk(1))
		time.Sleep(time.Minute)
		hurt("after one look", 1) // disk 5
		require.NoError(t, emulated.HealDisk(1))
		time.Sleep(5 * time.Minute)
		if len(events) > 0 {
			t.Errorf("a slow look made events: %q", events)
		}
		require.NoError(t, emulated.HangDisk(1))
		time.Sleep(5 * time.Minute)
		hurt("after five looks", 2)
		require.NoError(t, emulated.HealDisk(1))
		time.Sleep(5 * time.Minute)
		stop()
		const of = `disk 1: it hangs: it cannot be read: no answer in time. Pods: shop/web-0. Run csi-proxyctl node to see what to do.`
		want := []string{"true A problem of the storage hurts pods: " + of, "false A problem of the storage that hurt pods has ended: " + of}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDescribe_Judges: what is said of a stale mount is soon said again, and how old it is.
func TestDescribe_Judges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emulated := stagedNode(t)
		require.NoError(t, emulated.DetachDisk(1))
		machine, err := node.NewOn(emulated, node.WorkingDirs(kubeletDir))
		require.NoError(t, err)
		s := &storage{healer: &healer{Node: machine}}
		stop := background(t, func(ctx context.Context) { s.describe(ctx, looker(t, emulated)) })
		expect := func(when, want string) {
			t.Helper()
			time.Sleep(healPause + 2*time.Minute)
			if _, reason := s.healer.verdict(staged); !strings.Contains(reason, want) {
				t.Errorf("%s: %q, want %q", when, reason, want)
			}
		}
		expect("the disk is gone", "not among them")
		require.NoError(t, emulated.HangDisk(2))
		expect("another hangs", "disk 2")
		require.NoError(t, emulated.HealDisk(2))
		expect("the other answers again", "10m")
		stop()
	})
}

// impatient always wants a description, and takes the first.
type impatient struct{ described chan struct{} }

func (i impatient) StorageWanted() <-chan struct{} {
	wanted := make(chan struct{})
	close(wanted)
	return wanted
}

func (i impatient) Storage(*extensionv1.Node) { close(i.described) }

// TestDescribe_Fails: a description that fails or panics is tried again later.
func TestDescribe_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := []func() (*node.Description, error){
			func() (*node.Description, error) { return nil, errors.New("too many callers") },
			func() (*node.Description, error) { panic("a mistake") },
			func() (*node.Description, error) { return &node.Description{}, nil },
		}
		ctx, stop := context.WithCancel(t.Context())
		observer, ended, start := impatient{make(chan struct{})}, make(chan struct{}), time.Now()
		go func() {
			defer close(ended)
			(&storage{observer: observer}).describe(ctx, func(context.Context) (*node.Description, error) {
				next := results[0]
				results = results[1:]
				return next()
			})
		}()
		<-observer.described
		if passed := time.Since(start); passed != 2*describePause {
			t.Errorf("the third description came after %v", passed)
		}
		stop()
	})
}
