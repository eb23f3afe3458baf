package record

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
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
// A GUID that the host makes up in CreateDisk or SetDriveLayout, such as that of a new partition, stands for the
// one that it made up there when it was recorded, from then on. No other GUID stands for another. Time passes as
// it was recorded, and in Sleep.
func (r *Recording) Player(unknown func(error)) win.Machine {
	p := &player{
		now: r.Header.Started, started: r.Header.Started, unknown: unknown,
		answers: map[string][]Call{}, known: map[string]int{}, truncated: r.Truncated,
		guids: map[string]bool{}, madeUp: map[string]bool{}, recorded: map[string]string{}, live: map[string]string{},
	}
	if r.Description != nil {
		text, _ := marshal(r.Description) // without it, there are the calls
		p.addGUIDs(text)
	}
	for _, c := range r.Calls {
		for _, id := range newGUIDs(c.Method, string(c.In)) {
			p.madeUp[id] = p.madeUp[id] || !p.guids[id]
		}
		p.addGUIDs(c.In)
		p.addGUIDs(c.Out)
		key := keyOf(c.On, c.Method, c.In)
		p.answers[key] = append(p.answers[key], c)
		p.known[key]++
	}
	return machine{conductor: p}
}

// player answers from a recording.
type player struct {
	started   time.Time
	unknown   func(error)
	truncated bool // the recording is

	mu      sync.Mutex
	now     time.Time
	answers map[string][]Call // that are left, by keyOf
	known   map[string]int    // how many there were
	failure error             // the first call without an answer

	guids    map[string]bool   // of the recording
	madeUp   map[string]bool   // those of them that the host has made up
	recorded map[string]string // by the GUIDs that the host has made up instead
	live     map[string]string // the other way round
}

var guid = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// newGUID finds the GUIDs in the arguments of CreateDisk and SetDriveLayout that a host may make up: those of disks
// and partitions, and not those of their types.
var newGUID = regexp.MustCompile(`("(?:[dD]isk)?ID":")(` + guid.String() + `)"`)

// newGUIDs returns the GUIDs of a call that its host may have made up.
func newGUIDs(method, arguments string) (ids []string) {
	if method != "CreateDisk" && method != "SetDriveLayout" {
		return nil
	}
	for _, match := range newGUID.FindAllStringSubmatch(arguments, -1) {
		ids = append(ids, match[2])
	}
	return ids
}

func (p *player) addGUIDs(text json.RawMessage) {
	for _, id := range guid.FindAllString(string(text), -1) {
		p.guids[id] = true
	}
}

// answer takes the next answer to a call. p.mu is held.
func (p *player) answer(on int, method, arguments string) (c Call, count int, ok bool) {
	arguments = guid.ReplaceAllStringFunc(arguments, func(id string) string {
		if p.live[id] != "" {
			return "replaced " + id // another stands for it, so that a host cannot know it
		}
		return cmp.Or(p.recorded[id], id)
	})
	key := keyOf(on, method, json.RawMessage(arguments))
	if p.known[key] == 0 {
		key = p.learn(on, method, arguments)
	}
	left := p.answers[key]
	if p.failure != nil || len(left) == 0 {
		return Call{}, p.known[key], false
	}
	p.answers[key] = left[1:]
	return left[0], 0, true
}

// learn returns the key of the first call that was recorded with the same arguments except for GUIDs that the
// host has made up, and remembers which they stand for.
func (p *player) learn(on int, method, arguments string) string {
	ours := newGUIDs(method, arguments)
	if len(ours) == 0 {
		return ""
	}
	first, found, stand := uint64(math.MaxUint64), "", map[string]string(nil)
	shape := newGUID.ReplaceAllString(keyOf(on, method, json.RawMessage(arguments)), "$1")
	for key, left := range p.answers {
		if len(left) == 0 || left[0].Seq > first || newGUID.ReplaceAllString(key, "$1") != shape {
			continue
		}
		if instead, ok := p.standFor(ours, newGUIDs(method, key)); ok {
			first, found, stand = left[0].Seq, key, instead
		}
	}
	for our, their := range stand {
		p.recorded[our], p.live[their] = their, our
	}
	return found
}

// standFor returns which GUIDs of a host stand for which of the recording, if they can: both were made up, and
// each stands for one.
func (p *player) standFor(ours, theirs []string) (instead map[string]string, ok bool) {
	instead = map[string]string{}
	taken := map[string]string{}
	for i, our := range ours {
		their := theirs[i]
		if our == their {
			continue
		}
		if p.guids[our] || !p.madeUp[their] || p.live[their] != "" || cmp.Or(instead[our], their) != their || cmp.Or(taken[their], our) != our {
			return nil, false
		}
		instead[our], taken[their] = their, our
	}
	return instead, true
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
	p.mu.Lock()
	c, count, ok := p.answer(on, method, string(text))
	if !ok {
		p.mu.Unlock()
		return p.fail(p.unknownCall(on, method, text, count))
	}
	out := guid.ReplaceAllStringFunc(string(c.Out), func(id string) string { return cmp.Or(p.live[id], id) })
	if ended := p.started.Add(time.Duration(c.Start+c.Took) * time.Microsecond); ended.After(p.now) {
		p.now = ended
	}
	p.mu.Unlock()
	if c.Error != nil {
		return c.Error.Err()
	}
	if result != nil {
		if err := json.Unmarshal([]byte(out), result); err != nil {
			return p.fail(fmt.Errorf("%s %s: the recorded answer of call %d cannot be read: %w", method, text, c.Seq, err))
		}
	}
	return nil
}

// unknownCall is the error of a call that has no answer.
func (p *player) unknownCall(on int, method string, arguments json.RawMessage, count int) error {
	call, cut := method, ""
	if p.truncated {
		cut = "; it is cut off"
	}
	if on != 0 {
		call += fmt.Sprintf(" in directory %d", on)
	}
	if len(arguments) > 0 {
		call += " " + string(arguments)
	}
	if count > 0 {
		return fmt.Errorf("%s: the recording has %d answers to it, and all are used%s", call, count, cut)
	}
	return fmt.Errorf("%s: the recording has no answer to it%s", call, cut)
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
