package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
)

// notCompared are the results that a machine makes up.
var notCompared = map[string]bool{
	"OpenDirectory": true, // the number that the recording gives to the directory
	"Open":          true,
	"ChangedAt":     true, // a time
	"Uptime":        true,
	"Login":         true, // the id of the session
}

// withoutData are the results that a recording with hashes lacks.
var withoutData = map[string]bool{"ReadDevice": true, "FirmwareTable": true}

// compare reports where an answer of the emulated node differs.
func (p *playback) compare(recorded, emulated record.Call) {
	if !recorded.Error.Same(emulated.Error) {
		p.differs(recorded, Code, "", recorded.Error.String(), emulated.Error.String())
		return
	}
	if recorded.Error != nil {
		return
	}
	a, b := recorded.Out, emulated.Out
	switch recorded.Method {
	case "ChangedAt", "Login":
		p.renamed[string(a)] = b
	case "ListDirectory":
		list, _ := listed(recorded)
		other, _ := listed(emulated)
		if list.Stopped {
			other.keep(list)
		}
		a, b = entries(list), entries(other)
	case "DiskDevices":
		a = p.withoutUnknown(a)
	}
	if !notCompared[recorded.Method] && !(p.hashed && withoutData[recorded.Method]) {
		p.compareValues(recorded, "", a, b)
	}
}

// withoutUnknown removes the disks that the node lacks from a list.
func (p *playback) withoutUnknown(list json.RawMessage) json.RawMessage {
	var devices []json.RawMessage
	if len(p.unknown) == 0 || json.Unmarshal(list, &devices) != nil {
		return list
	}
	var kept [][]byte
	for _, text := range devices {
		var device win.Device
		if json.Unmarshal(text, &device) != nil || !p.unknown[device] {
			kept = append(kept, text)
		}
	}
	return slices.Concat([]byte("["), bytes.Join(kept, []byte(",")), []byte("]"))
}

// keep removes the entries that another list does not have.
func (l listing) keep(other listing) {
	names := map[string]bool{}
	for _, entry := range slices.Concat(other.Batches...) {
		names[entry.Name] = true
	}
	for i, batch := range l.Batches {
		l.Batches[i] = slices.DeleteFunc(batch, func(entry win.DirEntry) bool { return !names[entry.Name] })
	}
}

// entries are the entries of a listing by name, in one list. One that is there again gets a number, after a
// character that names do not have.
func entries(list listing) json.RawMessage {
	all := slices.Concat(list.Batches...)
	byName, times := map[string]any{}, map[string]int{}
	for _, entry := range all {
		name := entry.Name
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s/%d", name, times[name])
		}
		byName[name] = entry.FileInfo
	}
	text, _ := json.Marshal(byName) //nolint:errchkjson // texts and numbers
	return text
}

func (p *playback) differs(c record.Call, kind Kind, field, recorded, emulated string) {
	p.report.Differences = append(p.report.Differences, Difference{
		Call: c.Seq, Method: c.Method, Arguments: text(c.In), Kind: kind, Field: short(field), Recorded: short(recorded), Emulated: short(emulated),
	})
}

// compareValues compares two results, field by field.
func (p *playback) compareValues(c record.Call, field string, recorded, emulated json.RawMessage) {
	if bytes.Equal(recorded, emulated) {
		return
	}
	var a, b any
	if json.Unmarshal(recorded, &a) == nil && json.Unmarshal(emulated, &b) == nil {
		switch a := a.(type) {
		case map[string]any:
			if _, ok := b.(map[string]any); ok {
				p.compareObjects(c, field, recorded, emulated)
				return
			}
		case []any:
			if b, ok := b.([]any); ok && len(a) == len(b) {
				p.compareLists(c, field, recorded, emulated)
				return
			}
		}
	}
	p.differs(c, Value, field, text(recorded), text(emulated))
}

func (p *playback) compareObjects(c record.Call, field string, recorded, emulated json.RawMessage) {
	var a, b map[string]json.RawMessage
	_ = json.Unmarshal(recorded, &a) // both are objects
	_ = json.Unmarshal(emulated, &b)
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if c.Method == "Sessions" && key == "ID" {
			p.renamed[string(a[key])] = b[key]
			continue
		}
		p.compareValues(c, strings.TrimPrefix(field+"."+key, "."), a[key], b[key])
	}
}

func (p *playback) compareLists(c record.Call, field string, recorded, emulated json.RawMessage) {
	var a, b []json.RawMessage
	_ = json.Unmarshal(recorded, &a) // both are lists
	_ = json.Unmarshal(emulated, &b)
	if slices.Equal(sorted(a), sorted(b)) {
		p.differs(c, Order, field, text(recorded), text(emulated))
		return
	}
	for i := range a {
		p.compareValues(c, fmt.Sprintf("%s[%d]", field, i), a[i], b[i])
	}
}

func sorted(list []json.RawMessage) []string {
	texts := make([]string, len(list))
	for i, value := range list {
		texts[i] = string(value)
	}
	slices.Sort(texts)
	return texts
}
