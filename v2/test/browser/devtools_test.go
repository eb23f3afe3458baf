//go:build unix

package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// This file drives Chromium through the DevTools protocol, over pipes that only the two processes have: JSON messages that end with a zero
// byte. https://chromedevtools.github.io/devtools-protocol/

// chromeFlags are for tests: no window, no sandbox for root, and no requests of its own.
var chromeFlags = []string{
	"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--font-render-hinting=none",
	"--remote-debugging-pipe",
}

// chrome is a running Chromium.
type chrome struct {
	cmd    *exec.Cmd
	input  *os.File
	ended  chan struct{}
	mu     sync.Mutex
	last   int
	calls  map[int]chan protocolMessage
	events map[string]func(event) // by session
}

// event is something that happened in a tab.
type event struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type protocolMessage struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// startChrome starts a program with an empty profile in a directory, and more flags.
func startChrome(ctx context.Context, program, profile string, more ...string) (*chrome, error) {
	theirInput, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirInput.Close()
	output, theirOutput, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, input.Close())
	}
	defer theirOutput.Close()
	cmd := exec.CommandContext(ctx, program, append(append(chromeFlags, "--user-data-dir="+profile), more...)...)
	cmd.ExtraFiles = []*os.File{theirInput, theirOutput} // 3 and 4, as it expects
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, input.Close(), output.Close())
	}
	b := &chrome{cmd: cmd, input: input, ended: make(chan struct{}), calls: map[int]chan protocolMessage{}, events: map[string]func(event){}}
	go b.read(output)
	return b, nil
}

// Close ends the browser.
func (b *chrome) Close(ctx context.Context) error {
	_ = b.call(ctx, "", "Browser.close", nil, nil) // it may end before it answers
	<-b.ended
	return errors.Join(b.input.Close(), b.cmd.Wait())
}

// read delivers answers and events until the browser ends.
func (b *chrome) read(output io.ReadCloser) {
	defer close(b.ended)
	defer output.Close()
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadBytes(0)
		if err != nil {
			return
		}
		var m protocolMessage
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			return
		}
		b.mu.Lock()
		answer, handle := b.calls[m.ID], b.events[m.SessionID]
		delete(b.calls, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && answer != nil:
			answer <- m
		case m.ID == 0 && handle != nil:
			handle(event{m.Method, m.Params})
		}
	}
}

func (b *chrome) call(ctx context.Context, session, method string, params, result any) error {
	encoded, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		encoded = nil
	}
	answer := make(chan protocolMessage, 1)
	b.mu.Lock()
	b.last++
	m := protocolMessage{ID: b.last, SessionID: session, Method: method, Params: encoded}
	b.calls[m.ID] = answer
	line, err := json.Marshal(m)
	if err == nil {
		_, err = b.input.Write(append(line, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-b.ended:
		return fmt.Errorf("%s: the browser has ended", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// target is a tab with its own cookies and storage.
type target struct {
	browser *chrome
	session string
}

// Open opens an empty tab. handle gets its events, and must not call methods.
func (b *chrome) Open(ctx context.Context, handle func(event)) (*target, error) {
	var browsing struct {
		BrowserContextID string `json:"browserContextId"`
	}
	if err := b.call(ctx, "", "Target.createBrowserContext", nil, &browsing); err != nil {
		return nil, err
	}
	var created struct {
		TargetID string `json:"targetId"`
	}
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": browsing.BrowserContextID}, &created); err != nil {
		return nil, err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": created.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.events[attached.SessionID] = handle
	b.mu.Unlock()
	tab := &target{b, attached.SessionID}
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "DOM"} {
		if err := tab.Call(ctx, domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return tab, nil
}

// Call calls a method of the protocol. result may be nil.
func (t *target) Call(ctx context.Context, method string, params, result any) error {
	return t.browser.call(ctx, t.session, method, params, result)
}

// Evaluate runs an expression in the page, waits if it is a promise, and decodes its value.
func (t *target) Evaluate(ctx context.Context, expression string, value any) error {
	var result struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	params := map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}
	if err := t.Call(ctx, "Runtime.evaluate", params, &result); err != nil {
		return err
	}
	if e := result.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(result.Result.Value, value)
}

// Screenshot returns what the window shows, or the whole page, as PNG.
func (t *target) Screenshot(ctx context.Context, whole bool) ([]byte, error) {
	var shot struct {
		Data []byte `json:"data"`
	}
	err := t.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole, "optimizeForSpeed": false}, &shot)
	return shot.Data, err
}
