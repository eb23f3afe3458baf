package record

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Player returns a machine that answers as recorded: a call with the same method and arguments gets the
// answers in their order, each once. The first call without an answer, and all calls after it, fail with
// an error that names it; unknown is called with that error, once. It is for tests, such as
//
//	host := volumeapi.NewOn(recording.Player(func(err error) { t.Error(err) }))
//
// Time passes as it was recorded, and in Sleep.
func (r *Recording) Player(unknown func(error)) win.Machine {
	p := &player{now: r.Header.Started, started: r.Header.Started, answers: map[string][]Call{}, known: map[string]int{}, unknown: unknown}
	for _, c := range r.Calls {
		key := keyOf(c.On, c.Method, c.In)
		p.answers[key] = append(p.answers[key], c)
		p.known[key]++
	}
	return machine{conductor: p}
}

// player answers from a recording.
type player struct {
	started time.Time
	unknown func(error)

	mu      sync.Mutex
	now     time.Time
	answers map[string][]Call // that are left, by keyOf
	known   map[string]int    // how many there were
	failure error             // the first call without an answer
}

func keyOf(on int, method string, arguments json.RawMessage) string {
	return fmt.Sprintf("%d %s %s", on, method, arguments)
}

// Now is the recorded time of the latest answer, or later.
func (p *player) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Sleep advances the clock.
func (p *player) Sleep(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(max(d, 0))
	return ctx.Err()
}

// handle implements conductor. A player opens nothing.
func (p *player) handle() int { return 0 }

// do answers a call.
func (p *player) do(on int, method string, arguments in, result any, _ func() error) error {
	if method == "Close" { // it answers nothing, and a host may close when it likes
		return nil
	}
	text := json.RawMessage(nil)
	if len(arguments) > 0 {
		var err error
		if text, err = marshal(arguments); err != nil {
			return p.fail(fmt.Errorf("%s: %w", method, err))
		}
	}
	key := keyOf(on, method, text)
	p.mu.Lock()
	left := p.answers[key]
	if p.failure != nil || len(left) == 0 {
		count := p.known[key]
		p.mu.Unlock()
		return p.fail(unknownCall(on, method, text, count))
	}
	p.answers[key] = left[1:]
	c := left[0]
	if ended := p.started.Add(time.Duration(c.Start+c.Took) * time.Microsecond); ended.After(p.now) {
		p.now = ended
	}
	p.mu.Unlock()
	if c.Error != nil {
		return c.Error.Err()
	}
	if result != nil {
		if err := json.Unmarshal(c.Out, result); err != nil {
			return p.fail(fmt.Errorf("%s %s: the recorded answer of call %d cannot be read: %w", method, text, c.Seq, err))
		}
	}
	return nil
}

// unknownCall is the error of a call that has no answer.
func unknownCall(on int, method string, arguments json.RawMessage, count int) error {
	call := method
	if on != 0 {
		call += fmt.Sprintf(" in directory %d", on)
	}
	if len(arguments) > 0 {
		call += " " + string(arguments)
	}
	if count > 0 {
		return fmt.Errorf("%s: the recording has %d answers to it, and all are used", call, count)
	}
	return fmt.Errorf("%s: the recording has no answer to it", call)
}

// fail reports the first failure and returns it for every call from then on.
func (p *player) fail(err error) error {
	p.mu.Lock()
	first := p.failure == nil
	if first {
		p.failure = winerr.As(winerr.Internal, "replay a recording", "", err, "record the operation again")
	}
	err = p.failure
	p.mu.Unlock()
	if first && p.unknown != nil {
		p.unknown(err)
	}
	return err
}
