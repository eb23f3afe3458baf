package replay_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// others makes the calls that life and network do not make.
func others(t *testing.T, m win.Machine) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	_ = must(m.ServiceConfig(ctx, "vds"))
	_ = must(m.ActiveDependents(ctx, "vds"))
	_ = must(m.BIOSSerialNumber(ctx))
	_ = must(m.FirmwareTable(ctx))
	_ = must(m.SANPolicy(ctx))
	_ = must(m.Uptime(ctx))

	const d = 2
	check(m.SetDiskAttributes(ctx, win.PhysicalDrive(d), win.DiskAttributes{}, win.DiskAttributes{Offline: true}))
	check(m.UpdateDriveSize(ctx, win.PhysicalDrive(d)))
	_ = m.GrowPartition(ctx, win.PhysicalDrive(1), 2, 1)
	_ = m.ResizePartition(ctx, 1, win.NewGUID(), 1)
	check(m.RefreshStorageCache(ctx))
	for _, adapter := range must(m.StorageAdapters(ctx)) {
		check(m.RescanAdapter(ctx, adapter))
	}

	_ = must(m.VolumeOfDrive(ctx, `C:\`))
	var id win.VolumeID
	for _, v := range must(m.VolumeIDs(ctx)) {
		if extents := must(m.VolumeExtents(ctx, v)); extents[0].Disk == 1 {
			id = v
		}
	}
	check(m.FormatLegacy(ctx, id, win.FormatOptions{}))
	check(m.SetVolumeLabel(ctx, id, "label"))
	_ = must(m.FileSystem(ctx, id))
	_ = must(m.RootEntries(ctx, winsim.SystemVolume))
	check(m.SetRootSecurity(ctx, id, must(m.RootSecurity(ctx, id))))
	_ = m.ExtendVolume(ctx, id, 1)

	const dir = `C:\var\lib\kubelet`
	_ = must(m.Location(ctx, win.Following(dir)))
	_ = must(m.TargetInfo(ctx, win.Anywhere(dir)))
	_ = must(m.PathSpace(ctx, win.Following(dir)))
	opened := must(m.OpenDirectory(ctx, win.Following(dir)))
	defer opened.Close()
	_ = must(opened.Location(ctx, ""))
	_ = must(opened.FileInfo(ctx, ""))
	check(opened.CreateDirectoryLink(ctx, "link", `C:\Windows`))
	link := must(opened.ReparsePoint(ctx, "link"))
	if !must(opened.RemoveLink(ctx, "link", link, must(opened.ChangedAt(ctx, "link")))) {
		t.Error("the link is not removed")
	}

	share := win.SMBMappingRequest{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("csi-Pa55")}
	check(m.CreateSMBMapping(ctx, share))
	_ = must(m.SMBMappings(ctx))
	_ = must(m.SMBMapping(ctx, share.Remote))
	_ = must(m.FileInfo(ctx, win.Following(share.Remote)))
	check(m.RemoveSMBMapping(ctx, share.Remote, true))

	check(m.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret("winsim-secret")))
	portals := must(m.ReportSendTargetPortals(ctx))
	_ = must(m.PersistentLogins(ctx))
	_ = m.RemovePersistentTarget(ctx, win.PersistentLogin{Target: "iqn.none"})
	check(m.RemoveSendTargetPortal(ctx, portals[0]))
	_ = must(m.ReportSendTargetPortals(ctx))
}

// everyMethod records a call of every method of the seam, on a node without delays.
func everyMethod(t *testing.T) []byte {
	t.Helper()
	model := winsim.Default()
	model.Storage = winsim.Storage{}
	text := recorded(t, must(winsim.New(model)), record.Options{}, func(m win.Machine) {
		inspector := must(wholenode.NewOn(m, wholenode.WorkingDirs(`C:\var\lib\kubelet`)))
		_ = must(inspector.Describe(t.Context()))
		life(t.Context(), t, m)
		network(t.Context(), t, m)
		others(t, m)
	})
	seen := map[string]bool{"Now": true, "Sleep": true} // they are not recorded
	for _, c := range must(record.Read(bytes.NewReader(text))).Calls {
		seen[c.Method] = true
	}
	for _, seam := range []reflect.Type{reflect.TypeFor[win.Machine](), reflect.TypeFor[win.Directory]()} {
		for method := range seam.Methods() {
			if !seen[method.Name] {
				t.Errorf("no call of %s is recorded", method.Name)
			}
		}
	}
	return text
}

// otherAnswers are other answers to a call: another code, and if it has succeeded, results that differ in a field.
func otherAnswers(c record.Call) (list []record.Call) {
	failed := c
	failed.Out, failed.Error = nil, &record.Failure{Windows: uint32(winerr.IODevice)}
	list = append(list, failed)
	var out any
	if c.Error != nil || madeUp[c.Method] || c.Method == "ListDirectory" || json.Unmarshal(c.Out, &out) != nil {
		return list
	}
	for _, value := range otherValues(out) {
		other := c
		other.Out = must(json.Marshal(value))
		list = append(list, other)
	}
	return list
}

// madeUp are the results that a machine makes up, and that are not compared.
var madeUp = map[string]bool{"OpenDirectory": true, "Open": true, "ChangedAt": true, "Uptime": true, "Login": true, "Close": true}

// otherValues are values of the same form.
func otherValues(value any) (list []any) {
	switch v := value.(type) {
	case bool:
		list = append(list, !v)
	case float64:
		list = append(list, v+1)
	case string:
		list = append(list, v+"x")
	case []any:
		if len(v) > 0 {
			list = append(list, v[:len(v)-1])
			for _, other := range otherValues(v[0]) {
				list = append(list, append([]any{other}, v[1:]...))
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			for _, other := range otherValues(v[key]) {
				changed := maps.Clone(v)
				changed[key] = other
				list = append(list, changed)
			}
		}
	}
	return list
}

// leavesMore are the answers that have consequences for other calls. After an open that failed there is no
// directory to make the recorded calls in. After a mapping that failed for another reason than its password, only
// the emulated node has it.
var leavesMore = map[string]bool{"OpenDirectory": true, "Open": true, "CreateSMBMapping failed": true}

// TestCompare_PlantedMethods: of each method, a call that has succeeded and one that has failed get other answers
// in turn. Each shows, and nothing else, also if the node is built from the description and from what the calls
// tell.
func TestCompare_PlantedMethods(t *testing.T) {
	text := everyMethod(t)
	t.Run("emulated", func(t *testing.T) { plantMethods(t, text, 0) })
	// Nothing tells what a target holds and whom it lets in, how long a service takes, and of C:\Windows.
	t.Run("machine", func(t *testing.T) { plantMethods(t, withoutSnapshot(t, text), 13) })
}

// plantMethods plants answers in a recording in which some calls differ anyway.
func plantMethods(t *testing.T, text []byte, most int) {
	t.Helper()
	onlyTells := map[string]bool{"ServiceConfig": most > 0} // one call tells it all, so it is believed
	differs := map[uint64]bool{}
	for _, d := range must(replay.Compare(t.Context(), bytes.NewReader(text))).Differences {
		if differs[d.Call] = true; len(differs) > most {
			t.Errorf("without a planted answer: %s", d)
		}
	}
	lines, tried := bytes.SplitAfter(text, []byte("\n")), map[string]bool{}
	for i, line := range lines {
		var l struct{ Call *record.Call }
		if json.Unmarshal(line, &l) != nil || l.Call == nil || l.Call.Method == "Close" || differs[l.Call.Seq] {
			continue
		}
		kind := l.Call.Method
		if l.Call.Error != nil {
			kind += " failed"
		}
		if tried[kind] {
			continue
		}
		tried[kind] = true
		for _, planted := range otherAnswers(*l.Call) {
			other := slices.Clone(lines)
			other[i] = append(must(json.Marshal(map[string]any{"call": planted})), '\n')
			report := must(replay.Compare(t.Context(), bytes.NewReader(bytes.Join(other, nil))))
			shown, alone := false, leavesMore[kind]
			more := slices.DeleteFunc(report.Differences, func(d replay.Difference) bool {
				shown = shown || d.Call == planted.Seq
				return d.Call == planted.Seq || differs[d.Call]
			})
			if believed := onlyTells[kind] && planted.Error == nil; !believed && (!shown || len(more) > 0 && !alone) {
				t.Errorf("%s answers %s%s: shown %t, differences %v, notes %q, other programs %v", kind, planted.Out, planted.Error, shown, more, report.Notes, report.Outside)
			}
		}
	}
}

// TestCompare_List: a listing with an entry twice differs, one that has only the first entries is not compared, and
// one that the host has ended is compared as far as it goes.
func TestCompare_List(t *testing.T) {
	text := recorded(t, newNode(t, "default"), record.Options{}, func(m win.Machine) {
		dir := must(m.OpenDirectory(t.Context(), win.Following(`C:\var\lib`)))
		_ = dir.ListDirectory(t.Context(), "kubelet", func(win.Tree, []win.DirEntry) error { return nil })
		dir.Close()
	})
	const entry = `{"Name":"pods","Directory":true,"ReadOnly":false,"Tag":0}`
	if bytes.Count(text, []byte(entry)) != 1 {
		t.Fatalf("%s is not listed: %s", entry, text)
	}
	for _, test := range []struct {
		name, entries, end string
		differences        []string
		skipped            int
	}{
		{"same", entry, "", nil, 0},
		{"twice", entry + "," + entry, "", []string{"pods/2"}, 0},
		{"cut", entry, `,"Cut":true`, nil, 1},
		{"ended", entry, `,"Stopped":true`, nil, 0},
		{"ended, and differs", strings.Replace(entry, "false", "true", 1), `,"Stopped":true`, []string{"pods.ReadOnly"}, 0},
		{"ended, and another", strings.Replace(entry, "pods", "posts", 1), `,"Stopped":true`, []string{"posts"}, 0},
	} {
		lines := strings.SplitAfter(string(text), "\n")
		for i, line := range lines {
			if before, _, ok := strings.Cut(line, `"Batches":`); ok && test.name != "same" {
				lines[i] = before + `"Batches":[[` + test.entries + "]]" + test.end + "}}}\n"
			}
		}
		report := must(replay.Compare(t.Context(), strings.NewReader(strings.Join(lines, ""))))
		var fields []string
		for _, d := range report.Differences {
			fields = append(fields, d.Field)
		}
		others := func(field string) bool { return !strings.HasPrefix(field, "po") }
		if fields = slices.DeleteFunc(fields, others); !slices.Equal(fields, test.differences) || len(report.Skipped) != test.skipped {
			t.Errorf("%s: differences %v, skipped %v", test.name, report.Differences, report.Skipped)
		}
	}
}
