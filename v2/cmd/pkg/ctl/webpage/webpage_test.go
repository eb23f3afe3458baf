package webpage_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/webpage"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var update = flag.Bool("update", false, "rewrite testdata")

const gib = 1 << 30

// named returns a node with one of everything, all of it with the same name.
func named(name string) inventory.Node {
	part := strings.NewReplacer(`\`, "_", "/", "_").Replace(name)
	pod := `C:\pods\` + part + `\volumes\kubernetes.io~csi\` + part + `\mount`
	problems := []problem.Problem{
		{Severity: problem.Hurts, Kind: problem.Offline, Object: problem.Object{Type: problem.Share, ID: name}, Text: name, Run: name, Advice: name, Affects: []string{name}, Pods: []string{part}, PVs: []string{part}},
		{Severity: problem.WillHurt, Kind: problem.ReadOnly, Object: problem.Object{Type: problem.Disk, ID: "1"}, Text: name, Since: new(noon.Add(-3 * time.Hour)), Advice: name, Affects: []string{pod}},
		{Severity: problem.Note, Kind: problem.Full, Object: problem.Object{Type: problem.Volume, ID: name}, Text: name, Advice: name, Affects: []string{pod}},
	}
	volume := &extensionv1.Volume{
		Id: name, State: extensionv1.VolumeFormatted, FileSystem: name, Label: name, ClusterSizeBytes: 4096, RootAccess: name,
		TotalBytes: new(int64(10 * gib)), UsedBytes: new(int64(9.5 * gib)), Disks: []uint32{1, 2}, MountPaths: []string{name},
	}
	loose := proto.CloneOf(volume)
	loose.Id += "2"
	disk := &extensionv1.Disk{
		Number: new(uint32(1)), Device: name, SizeBytes: new(int64(20 * gib)), Online: new(true), System: true, PartitionStyle: name, SerialNumber: name, Page83: name,
		Location: name, Bus: name, Model: name, ScsiAddress: name, NvmeNamespaceId: 1, Eui64: name, Nguid: name, OfflineReason: name,
		Partitions: []*extensionv1.Partition{
			{Number: 1, OffsetBytes: new(int64(1 << 20)), SizeBytes: new(int64(16 << 20)), Type: name},
			{Number: 2, OffsetBytes: new(int64(17 << 20)), SizeBytes: new(int64(10 * gib)), Type: name, VolumeId: name},
		},
	}
	return inventory.Node{
		Host: name, Serial: name, At: noon,
		Node: &extensionv1.Node{
			Disks: []*extensionv1.Disk{disk, {Device: name}}, Volumes: []*extensionv1.Volume{volume, loose}, SharesListed: true,
			Shares:   []*extensionv1.Share{{Remote: name, Status: name, User: &name, Private: new(true), Answers: new(false), Links: []string{name}, RemovalWaits: new(true)}},
			Sessions: []*extensionv1.Session{{Target: name, Disks: []uint32{1, 7}, Persistent: true}},
			Links:    []*extensionv1.Link{{Path: pod, VolumeId: name}, {Path: name, VolumeId: name, Target: name, Stale: name}},
		},
		Problems: problems,
	}
}

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func write(t testing.TB, node inventory.Node) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, webpage.Write(&b, node))
	return b.String()
}

func writeLive(t testing.TB, node inventory.Node) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, webpage.New(node).WriteLive(&b, noon, "/token/events"))
	return b.String()
}

// TestWriteContent compares with a file, which shows in a review what a change does.
func TestWriteContent(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, webpage.New(named("NAME")).WriteContent(&b))
	golden := filepath.Join("testdata", "content.html")
	if *update {
		require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-update rewrites %s (-want +got):\n%s", golden, diff)
	}
}

// walk calls visit for every element.
func walk(t testing.TB, page string, visit func(n *html.Node)) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			visit(n)
		}
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// TestPolicy: the policy allows the script and the style of the page, and nothing else.
func TestPolicy(t *testing.T) {
	for name, page := range map[string]string{"file": write(t, named("x")), "live": writeLive(t, named("x"))} {
		var policy string
		hashes := map[string]string{}
		walk(t, page, func(n *html.Node) {
			switch n.Data {
			case "script", "style":
				sum := sha256.Sum256([]byte(n.FirstChild.Data))
				hashes[n.Data] = fmt.Sprintf("%s-src 'sha256-%s'", n.Data, base64.StdEncoding.EncodeToString(sum[:]))
				if len(n.Attr) > 0 {
					t.Errorf("%s: <%s> has attributes", name, n.Data)
				}
			case "meta":
				if attribute(n, "http-equiv") == "Content-Security-Policy" {
					policy = attribute(n, "content")
				}
			}
		})
		want := []string{
			"default-src 'none'", hashes["script"], hashes["style"], "img-src data:", "base-uri 'none'", "form-action 'none'",
			"require-trusted-types-for 'script'",
		}
		if name == "live" {
			want = append(want, "trusted-types content", "connect-src 'self'")
		} else {
			want = append(want, "trusted-types 'none'")
		}
		if diff := cmp.Diff(want, strings.Split(policy, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !strings.HasSuffix(webpage.Policy(), "; frame-ancestors 'none'") {
		t.Errorf("the header is %s", webpage.Policy())
	}
}

// skeleton lists the elements of a page with their attributes, without texts.
func skeleton(t testing.TB, page string) []string {
	t.Helper()
	var elements []string
	walk(t, page, func(n *html.Node) {
		element := n.Data
		for _, a := range n.Attr {
			element += " " + a.Key
			if a.Key == "class" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				element += "=" + a.Val
			}
		}
		elements = append(elements, element)
	})
	return elements
}

// FuzzNames: no name adds or changes an element, and every name is shown.
func FuzzNames(f *testing.F) {
	f.Add(`<script>alert(1)</script>`)
	f.Add(`"><img src=x onerror=alert(1)>`)
	f.Add(`' onmouseover='alert(1)`)
	f.Add("</title></style></script><script>alert(1)</script>")
	f.Add("{{.}} ${alert(1)} javascript:alert(1) data:text/html,x &lt; &amp;")
	f.Add("a\u202eb\x00\x1b[2J\r\nc\u2028<!-- -->")
	f.Add(`\\server\share\<svg/onload=alert(1)>`)
	want := [][]string{skeleton(f, write(f, named("x"))), skeleton(f, writeLive(f, named("x")))}
	f.Fuzz(func(t *testing.T, name string) {
		if _, ofKubelet := kubelet.Parse(name); ofKubelet || strings.TrimSpace(name) == "" || name == "ok" || name == "RAW" || name == "data" || name == inventory.NotMapped || name == "1" {
			return // which pages show otherwise
		}
		for i, page := range []string{write(t, named(name)), writeLive(t, named(name))} {
			if got := skeleton(t, page); !slices.Equal(got, want[i]) {
				t.Fatalf("the name %q changes the page (-want +got):\n%s", name, cmp.Diff(want[i], got))
			}
			var text strings.Builder
			walk(t, page, func(n *html.Node) {
				if c := n.FirstChild; c != nil && c.Type == html.TextNode && n.Data == "code" {
					text.WriteString(c.Data)
				}
			})
			if shown := output.Printable(name); !strings.Contains(text.String(), shown) {
				t.Fatalf("the name %q is not shown as %q", name, shown)
			}
		}
	})
}

// TestWrite_Labels: what is drawn has a text, what can be typed into has a label, and no two
// elements have the same id.
func TestWrite_Labels(t *testing.T) {
	ids := map[string]bool{}
	node := named("x")
	node.Disks = append(node.Disks, node.Disks...) // the same once more
	walk(t, write(t, node), func(n *html.Node) {
		id := attribute(n, "id")
		if ids[id] && id != "" {
			t.Errorf("two elements have the id %s", id)
		}
		ids[id] = true
		switch n.Data {
		case "svg":
			if attribute(n, "aria-hidden") != "true" && attribute(n, "aria-label") == "" {
				t.Error("a picture has no label")
			}
		case "input":
			if n.Parent.Data != "label" {
				t.Errorf("the field %s has no label", id)
			}
		}
	})
}

// TestWrite_Problems: problems come first, in the order of the node, and lead to their objects.
func TestWrite_Problems(t *testing.T) {
	page := write(t, named("x"))
	if at := strings.Index(page, `id="problems"`); at < 0 || at > strings.Index(page, `id="disks"`) {
		t.Error("problems do not come first")
	}
	ids := map[string]bool{}
	walk(t, page, func(n *html.Node) { ids["#"+attribute(n, "id")] = true })
	links := 0
	walk(t, page, func(n *html.Node) {
		if n.Data == "a" {
			links++
			if !ids[attribute(n, "href")] {
				t.Errorf("nothing has the id %s", attribute(n, "href"))
			}
		}
	})
	if links == 0 {
		t.Error("no links")
	}
	if page := write(t, inventory.Node{}); !strings.Contains(page, "No problems known.") {
		t.Error("a node without problems is not said to be one")
	}
}
