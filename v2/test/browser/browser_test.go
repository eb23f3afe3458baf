//go:build unix

// Package browser tests the pages of csi-proxyctl in Chromium.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/webpage"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	chromium    = flag.String("browser.chromium", "", "the `file` of Chromium; without it the tests are skipped")
	programs    = flag.String("browser.programs", "", "`directory` of csi-proxyctl and csi-proxy-sim")
	screenshots = flag.String("browser.screenshots", "", "`directory` for screenshots, to look at")
)

// required makes tests fail where there is no Chromium, so that skipped tests do not look like passed
// ones.
const required = "CSI_PROXY_BROWSER_REQUIRED"

// limit is the time for one test. Nothing takes that long.
const limit = time.Minute

// shared is the browser of all tests. Each has a tab with its own storage.
var shared *chrome

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m)) //nolint:forbidigo // this is main
}

func run(m *testing.M) int {
	if *chromium == "" {
		return m.Run() // which skips all
	}
	if _, err := os.Stat(*chromium); err != nil {
		if os.Getenv(required) != "" || os.Getenv("CI") != "" {
			fmt.Fprintf(os.Stderr, "Chromium is required, and not there: %v\n", err)
			return 1
		}
		return m.Run()
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(profile)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// evil.example leads to this machine, as after an attack on DNS.
	shared, err = startChrome(ctx, *chromium, profile, "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// tab is a tab that fails the test when the page does something that it must not do.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // of the test
	*target

	mu       sync.Mutex
	requests map[string]string // addresses, by the id of the request
	statuses []int
	errors   []string
	loaded   chan struct{}
}

func open(t *testing.T) *tab {
	t.Helper()
	if shared == nil {
		t.Skipf("make test-browser runs this; to fail without Chromium, set %s=1", required)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, loaded: make(chan struct{}, 10), requests: map[string]string{}}
	var err error
	if p.target, err = shared.Open(ctx, p.handle); err != nil {
		t.Fatal(err)
	}
	p.size(1100, 900, false)
	return p
}

func (p *tab) handle(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var params struct {
		Type          string
		RequestID     string
		BlockedReason string
		Request       struct{ URL string }
		Entry         struct{ Level string }
		Response      struct{ Status int }
	}
	_ = json.Unmarshal(e.Params, &params)
	complain := func() { p.errors = append(p.errors, e.Method+": "+string(e.Params)) }
	switch e.Method {
	case "Page.loadEventFired":
		p.loaded <- struct{}{}
	case "Network.requestWillBeSent":
		p.requests[params.RequestID] = params.Request.URL
	case "Network.loadingFailed":
		if params.BlockedReason == "csp" { // it has not left
			delete(p.requests, params.RequestID)
		}
	case "Network.responseReceived":
		p.statuses = append(p.statuses, params.Response.Status)
	case "Page.javascriptDialogOpening", "Runtime.exceptionThrown":
		complain()
	case "Runtime.consoleAPICalled":
		if params.Type == "error" || params.Type == "warning" || params.Type == "assert" {
			complain()
		}
	case "Log.entryAdded":
		if params.Entry.Level == "error" || params.Entry.Level == "warning" {
			complain()
		}
	}
}

// check fails if the console has errors, or a request has left for another place than these.
func (p *tab) check(allowed ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.errors {
		p.t.Errorf("the page has an error: %s", text)
	}
	for _, address := range p.requests {
		if !slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(address, prefix) }) && !strings.HasPrefix(address, "data:") {
			p.t.Errorf("the page asks for %s", address)
		}
	}
}

func (p *tab) call(method string, params any) {
	p.t.Helper()
	require.NoError(p.t, p.Call(p.ctx, method, params, nil))
}

func (p *tab) size(width, height int, phone bool) {
	p.t.Helper()
	scale := 1
	if phone {
		scale = 2
	}
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone})
}

func (p *tab) scheme(scheme string) {
	p.t.Helper()
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// visit opens an address and waits until it is loaded.
func (p *tab) visit(address string) {
	p.t.Helper()
	p.call("Page.navigate", map[string]any{"url": address})
	select {
	case <-p.loaded:
	case <-p.ctx.Done():
		p.t.Fatalf("%s is not loaded: %v", address, p.ctx.Err())
	}
}

// show writes a page to a file and visits it.
func (p *tab) show(node inventory.Node) (address string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "node.html")
	f, err := os.Create(file)
	require.NoError(p.t, err)
	defer f.Close()
	require.NoError(p.t, webpage.Write(f, node))
	address = (&url.URL{Scheme: "file", Path: file}).String()
	p.visit(address)
	return address
}

// value returns the value of an expression.
func value[T any](p *tab, expression string) (v T) {
	p.t.Helper()
	require.NoError(p.t, p.Evaluate(p.ctx, expression, &v))
	return v
}

func (p *tab) expect(want any, expression string) {
	p.t.Helper()
	if got := value[any](p, expression); !cmp.Equal(got, want) {
		p.t.Errorf("%s: got %v, want %v", expression, got, want)
	}
}

// wait waits until an expression is true. The page looks at it in each frame.
func (p *tab) wait(expression string) {
	p.t.Helper()
	err := p.Evaluate(p.ctx, `new Promise((done) => { const look = () => ((`+expression+`) ? done() : requestAnimationFrame(look)); look(); })`, nil)
	if err != nil {
		p.t.Fatalf("%s does not become true: %v\nThe page says: %s", expression, err, p.text())
	}
}

// text returns what the page shows, also after the test's time is over.
func (p *tab) text() (text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), 5*time.Second)
	defer cancel()
	_ = p.Evaluate(ctx, "document.body.innerText", &text)
	return text
}

func (p *tab) typeText(text string) {
	p.t.Helper()
	p.call("Input.insertText", map[string]any{"text": text})
}

func (p *tab) press(key, text string) {
	p.t.Helper()
	p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text})
	p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
}

// click clicks the middle of an element, as a mouse does.
func (p *tab) click(selector string) {
	p.t.Helper()
	at := value[[]float64](p, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, selector))
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1})
	}
}

// shot keeps a screenshot to look at, if the test knows where to.
func (p *tab) shot(name string, whole bool) {
	p.t.Helper()
	png, err := p.Screenshot(p.ctx, whole)
	require.NoError(p.t, err)
	if len(png) < 10_000 {
		p.t.Errorf("the screenshot %s has only %d bytes: nothing is on it", name, len(png))
	}
	if *screenshots == "" {
		return
	}
	require.NoError(p.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600))
}

const gib = 1 << 30

// many returns a node with this many volumes, each used by a pod. Each tenth disk is offline.
func many(volumes int) inventory.Node {
	node := inventory.Node{Host: "many", At: time.Now(), Node: &extensionv1.Node{SharesListed: true, SessionsListed: true, LinksSearched: true}}
	for i := range uint32(volumes) {
		id := fmt.Sprintf(`\\?\Volume{00000000-0000-0000-0000-%012d}\`, i)
		link := fmt.Sprintf(`C:\var\lib\kubelet\pods\00000000-0000-4000-a000-%012d\volumes\kubernetes.io~csi\pvc-%d\mount`, i, i)
		node.Links = append(node.Links, &extensionv1.Link{Path: link, VolumeId: id})
		node.Volumes = append(node.Volumes, &extensionv1.Volume{
			Id: id, State: extensionv1.VolumeFormatted, FileSystem: "NTFS", Label: fmt.Sprintf("data %d", i), ClusterSizeBytes: 4096, RootAccess: "default",
			TotalBytes: new(int64(10 * gib)), UsedBytes: new(int64(i%10) * gib), Disks: []uint32{i}, Partition: 2,
			MountPaths: []string{fmt.Sprintf(`C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi.example.com\%064d\globalmount`, i)},
		})
		node.Disks = append(node.Disks, &extensionv1.Disk{
			Number: new(i), SizeBytes: new(int64(10 * gib)), Online: new(i%10 != 7), PartitionStyle: "GPT", SerialNumber: fmt.Sprintf("SERIAL%04d", i),
			Page83: "id", Location: "1:0:0:1", Bus: "scsi", Model: "Disk", Device: `\\?\scsi#disk`,
			Partitions: []*extensionv1.Partition{
				{Number: 1, OffsetBytes: new(int64(1 << 20)), SizeBytes: new(int64(16 << 20)), Type: "reserved"},
				{Number: 2, OffsetBytes: new(int64(17 << 20)), SizeBytes: new(int64(10*gib - 18<<20)), Type: "data", VolumeId: id},
			},
		})
		if i%10 == 7 {
			node.Problems = append(node.Problems, problem.Problem{
				Severity: problem.Hurts, Kind: problem.Offline, Object: problem.Object{Type: problem.Disk, ID: fmt.Sprint(i)}, Text: "offline: 2 paths lead to it", Run: fmt.Sprintf("csi-proxyctl disk online %d", i), Affects: []string{link},
				Since: new(node.At.Add(-3 * time.Hour)), Pods: []string{fmt.Sprintf("00000000-0000-4000-a000-%012d", i)}, PVs: []string{fmt.Sprintf("pvc-%d", i)},
			})
		}
	}
	return node
}

// shown counts the items of a list that the filter shows.
const shown = `(list) => [...document.querySelectorAll("#" + list + " [data-item]")].filter((e) => e.checkVisibility()).length`

func TestFilter(t *testing.T) {
	p := open(t)
	address := p.show(many(40))
	p.expect(40.0, "("+shown+`)("disks")`)
	p.press("/", "/")
	p.expect("search", "document.activeElement.id")
	p.typeText("pvc-12")
	p.expect(1.0, "("+shown+`)("disks")`)
	p.expect(true, `document.querySelector("#disks [data-item]:not([hidden]) h3").textContent === "Disk 12"`)
	p.expect("1 of 44", `document.getElementById("matches").textContent`)
	p.press("Escape", "")
	p.expect(40.0, "("+shown+`)("disks")`)
	p.typeText("SERIAL0001 gpt") // all words, in any letter case
	p.expect(1.0, "("+shown+`)("disks")`)
	p.press("Escape", "")
	p.typeText("no such thing")
	p.expect(0.0, "("+shown+`)("disks")`)
	p.expect(true, `document.getElementById("nothing").checkVisibility()`)
	p.press("Escape", "")
	p.click("#only")
	p.expect(4.0, "("+shown+`)("disks")`)
	p.expect(4.0, "("+shown+`)("problems")`)
	p.expect("8 of 44", `document.getElementById("matches").textContent`)
	p.click("#only")
	p.expect(40.0, "("+shown+`)("disks")`)
	p.check(address)
}

// TestLinks: a problem leads to its disk, also if the filter hides the disk.
func TestLinks(t *testing.T) {
	p := open(t)
	address := p.show(many(40))
	p.click("#search")
	p.typeText("2 paths lead to it") // in both lists
	p.press("Escape", "")
	p.typeText("csi-proxyctl disk online 17") // only in the list of problems
	p.expect(0.0, "("+shown+`)("disks")`)
	p.click("#problems [data-item]:not([hidden]) a")
	p.wait(`document.querySelector("#disks :target h3")?.checkVisibility()`)
	p.expect("Disk 17", `document.querySelector("#disks :target h3").textContent`)
	p.check(address)
}

// TestCopy: a click copies the command.
func TestCopy(t *testing.T) {
	p := open(t)
	address := p.show(many(20))
	p.call("Page.bringToFront", nil)
	p.click("#problems button")
	p.wait(`document.querySelector("#problems button").textContent === "Copied"`)
	p.click("#search")
	p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "v", "commands": []string{"paste"}})
	p.wait(`document.getElementById("search").value === "csi-proxyctl disk online 7"`)
	p.check(address)
}

// TestHostileNames: names of devices, servers and pods are text, whatever is in them.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		`<script>alert(1)</script>`,
		`"><img src=x onerror=alert(1)>`,
		`</title></style></script><script>alert(1)</script><style>*{display:none}`,
		`<svg onload=alert(1)><a href="javascript:alert(1)">x</a>`,
		`<meta http-equiv=refresh content="0;url=http://evil.example/"><base href="http://evil.example/">`,
		`<form id=content><input id=search name=tools></form>`,
	} {
		t.Run("", func(t *testing.T) {
			p := open(t)
			node := many(1)
			disk, volume := node.Disks[0], node.Volumes[0]
			node.Host, disk.SerialNumber, disk.Model, disk.Page83, disk.Bus, disk.PartitionStyle = name, name, name, name, name, name
			volume.Id, volume.Label, volume.FileSystem, volume.MountPaths, disk.Partitions[1].VolumeId = name, name, name, []string{name}, name
			node.Links = []*extensionv1.Link{{Path: `C:\pods\` + name + `\volumes\kubernetes.io~csi\x\mount`, VolumeId: name}}
			node.Problems = []problem.Problem{{Kind: problem.Offline, Object: problem.Object{Type: problem.Share, ID: name}, Text: name, Run: name, Advice: name, Affects: []string{name}}}
			node.Shares = []*extensionv1.Share{{Remote: name, Status: name, User: &name, Links: []string{name}}}
			node.Sessions = []*extensionv1.Session{{Target: name}}
			node.Links = append(node.Links, &extensionv1.Link{Path: name, VolumeId: name, Target: name, Stale: name})
			address := p.show(node)
			p.expect(1.0, `document.querySelectorAll("script").length`)
			p.expect(0.0, `document.querySelectorAll("img, meta[http-equiv=refresh], base, iframe, [onerror], [onload]").length`)
			p.expect(name, `document.querySelector("h1").textContent`)
			p.expect(name, `document.querySelector("#shares h3").textContent`)
			p.expect(name, `document.querySelector("#disks summary .id code").textContent`)
			p.expect(name, `document.querySelector("[data-copy]").dataset.copy`)
			p.expect(true, `document.querySelector("#disks").checkVisibility()`)
			p.click("#search") // it still works
			p.typeText("no such thing")
			p.expect(0.0, "("+shown+`)("disks")`)
			p.check(address)
		})
	}
}

// TestPolicy: even a page with a hole would run no script and load nothing.
func TestPolicy(t *testing.T) {
	p := open(t)
	p.show(many(1))
	p.expect("blocked", `new Promise((done) => {
		document.addEventListener("securitypolicyviolation", () => done("blocked"));
		const image = document.createElement("img");
		image.src = "http://evil.example/";
		document.body.append(image);
	})`)
	for _, attempt := range []string{
		`document.body.innerHTML = "<b>x</b>"`,
		`document.body.setAttribute("onclick", "alert(1)")`,
		`Object.assign(document.createElement("script"), {text: "alert(1)"})`,
		`fetch("http://evil.example/")`,
		`new Promise((done, failed) => Object.assign(new EventSource("http://evil.example/"), {onerror: failed, onopen: done}))`,
	} {
		p.expect("refused", `(async () => { try { await (`+attempt+`); return "allowed"; } catch { return "refused"; } })()`)
	}
	p.expect(true, `document.body.append(Object.assign(document.createElement("style"), {textContent: "*{display:none}"})), document.body.checkVisibility()`)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, address := range p.requests {
		if !strings.HasPrefix(address, "file:") && !strings.HasPrefix(address, "data:") {
			t.Errorf("the page asks for %s", address)
		}
	}
}

// contrast returns the texts whose contrast with what is behind them is less than WCAG 2 demands of
// normal text.
const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const pixel = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const luminance = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = pixel(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
	const poor = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (!(e instanceof HTMLElement) || !e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		const [a, b] = [luminance(pixel(getComputedStyle(e).color)), luminance(behind(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) poor.add(ratio.toFixed(1) + " " + e.className + " " + e.textContent.slice(0, 40));
	}
	return [...poor];
})()`

// TestSort: a click on a column sorts the table, and another one turns it round.
func TestSort(t *testing.T) {
	p := open(t)
	address := p.show(many(20))
	const first = `document.querySelector("#volumes-table tbody td").textContent`
	p.expect("disk 0", first)
	p.click(`[data-sort="0"]`)
	p.expect("disk 0", first) // numbers, not letters
	p.click(`[data-sort="0"]`)
	p.expect("disk 19", first)
	p.click(`[data-sort="5"]`)
	p.click(`[data-sort="5"]`)
	p.expect("90%", `document.querySelector("#volumes-table tbody tr").cells[5].textContent`)
	p.expect("descending", `document.querySelectorAll("#volumes-table th")[5].getAttribute("aria-sort")`)
	p.expect(2.0, `document.querySelectorAll("#disks details.card[open]").length`) // those that are offline
	p.check(address)
}

// TestLook takes screenshots, and checks what can be checked of the look.
func TestLook(t *testing.T) {
	file := func(name, page string) string {
		path := filepath.Join(t.TempDir(), name+".html")
		require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
		return (&url.URL{Scheme: "file", Path: path}).String()
	}
	var forty strings.Builder
	require.NoError(t, webpage.Write(&forty, many(40)))
	address := file("broken", startSim(t, "-preset", "broken").ctl("node", "-o", "html"))
	pages := map[string]string{"broken": address, "busy": file("busy", startSim(t, "-preset", "busy").ctl("node", "-o", "html")), "forty": file("forty", forty.String())}
	type size struct{ width, height int }
	for name := range pages {
		for _, scheme := range []string{"light", "dark"} {
			for _, size := range []size{{390, 844}, {800, 1000}, {1400, 1000}} {
				t.Run(fmt.Sprintf("%s-%d-%s", name, size.width, scheme), func(t *testing.T) {
					p := open(t)
					p.size(size.width, size.height, size.width < 500)
					p.scheme(scheme)
					p.visit(pages[name])
					p.expect([]any{}, contrast)
					p.expect(true, `[document.documentElement, ...document.querySelectorAll(".wide")].every((e) => e.scrollWidth <= e.clientWidth)`)
					p.shot(fmt.Sprintf("%s-%d-%s", name, size.width, scheme), true)
					p.check(pages[name])
				})
			}
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := open(t)
			p.scheme(scheme)
			p.visit(address)
			background := value[string](p, "getComputedStyle(document.body).backgroundColor")
			p.click("#theme")
			if other := value[string](p, "getComputedStyle(document.body).backgroundColor"); other == background {
				t.Error("the switch does not change the theme")
			}
			p.expect([]any{}, contrast)
			p.check(address)
		})
	}
	t.Run("paper", func(t *testing.T) {
		p := open(t)
		p.scheme("dark")
		p.visit(address)
		var pdf struct {
			Data []byte `json:"data"`
		}
		if err := p.Call(p.ctx, "Page.printToPDF", map[string]any{"printBackground": false}, &pdf); err != nil || len(pdf.Data) < 10_000 {
			t.Errorf("%d bytes, %v", len(pdf.Data), err)
		}
		if *screenshots != "" {
			require.NoError(t, os.WriteFile(filepath.Join(*screenshots, "paper.pdf"), pdf.Data, 0o600))
		}
		p.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"})
		p.shot("paper", true)
		p.expect([]any{}, contrast)
		p.expect(false, `document.getElementById("tools").checkVisibility()`)
		p.check(address)
	})
	t.Run("no script", func(t *testing.T) {
		p := open(t)
		p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
		p.visit(address)
		for selector, want := range map[string]bool{"#tools": false, "#theme": false, "#problems .card": true, "#disks .bar": true} {
			if got := p.visible(selector); got != want {
				t.Errorf("%s is visible: %v, want %v", selector, got, want)
			}
		}
		p.check(address)
	})
}

// TestPicture takes the picture of the manuals, docs/node.png.
func TestPicture(t *testing.T) {
	node := startSim(t, "-preset", "busy")
	address, _ := node.web()
	p := open(t)
	p.size(1000, 1182, false)
	p.scheme("light")
	p.visit(address)
	p.wait(status + ` === "Live"`)
	p.expect("win-1", `document.querySelector("h1").textContent = "win-1"`) // not that of the machine
	p.shot("picture", false)
	p.check(address)
}

// visible reports whether an element has a place on the page. It needs no script.
func (p *tab) visible(selector string) bool {
	p.t.Helper()
	var document struct{ Root struct{ NodeID int } }
	require.NoError(p.t, p.Call(p.ctx, "DOM.getDocument", nil, &document))
	var found struct{ NodeID int }
	if err := p.Call(p.ctx, "DOM.querySelector", map[string]any{"nodeId": document.Root.NodeID, "selector": selector}, &found); err != nil || found.NodeID == 0 {
		p.t.Fatalf("%s: %v", selector, err)
	}
	return p.Call(p.ctx, "DOM.getBoxModel", map[string]any{"nodeId": found.NodeID}, nil) == nil
}

// sim is an emulated node as a program.
type sim struct {
	t    *testing.T
	dir  string
	args []string
	stop func()
}

func startSim(t *testing.T, args ...string) *sim {
	t.Helper()
	if shared == nil {
		t.Skipf("make test-browser runs this; to fail without Chromium, set %s=1", required)
	}
	dir := serve.SocketDir(t)
	s := &sim{t: t, dir: dir, args: append(args, "-socket-dir", dir, "-control", "default")}
	s.start()
	return s
}

func (s *sim) start() {
	s.t.Helper()
	var lines *bufio.Scanner
	lines, s.stop = start(s.t, "csi-proxy-sim", s.args...)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "Ready") {
			return
		}
	}
	s.t.Fatal("csi-proxy-sim does not start")
}

// start starts a program that serves, and returns what it prints. It ends by an interrupt.
func start(t *testing.T, name string, args ...string) (lines *bufio.Scanner, stop func()) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(*programs, name), args...)
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		go func() { _, _ = io.Copy(io.Discard, output) }()
		_ = input.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	t.Cleanup(stop)
	return bufio.NewScanner(output), stop
}

// ctl runs csi-proxyctl and returns what it prints.
func (s *sim) ctl(args ...string) string {
	s.t.Helper()
	var errs strings.Builder
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(*programs, "csi-proxyctl"), append(args, "--endpoint-dir", s.dir)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// web starts csi-proxyctl web and returns the address of the page.
func (s *sim) web(args ...string) (address string, stop func()) {
	s.t.Helper()
	lines, stop := start(s.t, "csi-proxyctl", append([]string{"web", "--interval", "200ms", "--endpoint-dir", s.dir}, args...)...)
	if !lines.Scan() {
		s.t.Fatal("csi-proxyctl web prints no address")
	}
	return lines.Text(), stop
}

const status = `document.getElementById("connection").textContent`

// TestLive: the page follows the node and keeps what the user does in it. It says when the daemon or
// csi-proxyctl is gone, and goes on when the daemon is back.
func TestLive(t *testing.T) {
	const hostile = `<script>alert(1)</script>` // a serial number
	node := startSim(t, "-preset", "busy")
	address, stopWeb := node.web()
	p := open(t)
	p.size(1100, 500, false)
	p.visit(address)
	p.wait(status + ` === "Live"`)
	p.expect(6.0, "("+shown+`)("disks")`)

	// What the user does: a filter, an open list, the focus, a place on the page.
	p.click("#search")
	p.typeText("disk")
	p.click("#disks [data-item]:last-child summary")
	p.wait(`document.querySelector("#disks [data-item]:last-child").open`)
	p.wait(`scrollY > 100`)
	const place = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(kept.getBoundingClientRect().top))))`
	before := value[float64](p, `(window.kept = document.querySelector("#disks [data-item]:last-child"), `+place+`)`)

	node.ctl("sim", "attach", "7GiB", "--serial", hostile)
	node.ctl("disk", "rescan")
	p.wait(`document.getElementById("disks").innerText.includes("` + hostile + `")`)
	p.expect(7.0, "("+shown+`)("disks")`)
	p.expect("disk", `document.getElementById("search").value`)
	p.expect(true, `kept.isConnected && kept.open`)
	p.expect("SUMMARY", `document.activeElement.tagName`)
	if after := value[float64](p, place); math.Abs(after-before) > 8 {
		t.Errorf("the disk that the user looks at moves from %.0f to %.0f", before, after)
	}
	p.expect(0.0, `document.querySelectorAll("script").length - 1`)

	node.ctl("sim", "detach", "6")
	node.ctl("disk", "rescan")
	p.wait(`!document.getElementById("disks").innerText.includes("` + hostile + `")`)
	p.check(address)

	node.stop()
	p.wait(status + `.startsWith("CSI Proxy does not answer: ")`)
	p.expect(6.0, "("+shown+`)("disks")`) // the last known state
	node.start()
	p.wait(status + ` === "Live"`)
	p.check(address)

	stopWeb()
	p.wait(status + `.startsWith("Connection lost.")`)
	u, err := url.Parse(address)
	require.NoError(t, err)
	node.web("--listen", u.Port()) // with another token
	p.wait(status + `.startsWith("No updates: open the address that csi-proxyctl web printed last.")`)
}
