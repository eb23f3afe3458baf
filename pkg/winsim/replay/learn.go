package replay

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// learn adds to a model what a description does not have, but the calls tell: files that were there before the
// calls, servers, from the mappings that prove them, and portals and targets, from their discovery.
func learn(model *winsim.Model, h *history, calls []record.Call) {
	l := learner{model: model}
	l.files(h)
	l.targets(calls)
	for _, c := range calls {
		switch c.Method {
		case "CreateSMBMapping":
			l.mapping(c)
		case "AddSendTargetPortal", "ReportTargetPortals", "Login":
			l.discovery(c)
		}
	}
}

// servicesOf returns the services of a description, and others that calls tell of. The first call that starts or
// stops one tells its state before better than a status, which may be the answer that differs.
func servicesOf(d *record.Description, calls []record.Call) []record.Service {
	services := slices.Clone(d.Services)
	index := map[string]int{} // by folded name
	for i, s := range services {
		index[winpath.Fold(s.Name)] = i
	}
	changed := make([]bool, len(services)) // a call has tried to start or stop it
	for _, c := range calls {
		var in struct{ Name string }
		changes := c.Method == "StartService" || c.Method == "StopService"
		if !changes && (c.Error != nil || c.Method != "ServiceStatus" && c.Method != "ServiceConfig") || json.Unmarshal(c.In, &in) != nil {
			continue
		}
		at, known := index[winpath.Fold(in.Name)]
		switch {
		case !known && c.Error != nil:
			continue
		case !known:
			missing := &record.Failure{Kind: "not recorded"}
			s := record.Service{Name: in.Name}
			s.Config.Error, s.Status.Error = missing, missing
			at, services, changed = len(services), append(services, s), append(changed, false)
			index[winpath.Fold(in.Name)] = at
		case at < len(d.Services) || changed[at] && c.Method != "ServiceConfig":
			continue
		}
		s, state := &services[at], win.ServiceStopped
		switch c.Method {
		case "ServiceStatus":
			learnFirst(&s.Status, c)
		case "ServiceConfig":
			learnFirst(&s.Config, c)
		case "StopService":
			state = win.ServiceRunning
		}
		if changed[at] = changed[at] || changes; changes && c.Error == nil {
			s.Status = record.Answer[win.ServiceStatus]{Value: win.ServiceStatus{State: state}}
		}
	}
	for i := range services[len(d.Services):] {
		if config := &services[len(d.Services)+i].Config; config.Error != nil {
			*config = record.Answer[win.ServiceConfig]{Value: win.ServiceConfig{StartType: win.StartManual}}
		}
	}
	return services
}

// learnFirst takes an answer if it is the first.
func learnFirst[T any](a *record.Answer[T], c record.Call) {
	if a.Error != nil && json.Unmarshal(c.Out, &a.Value) == nil {
		a.Error = nil
	}
}

type learner struct{ model *winsim.Model }

// files learns what was there before the calls: what the first call about a file has found, unless an earlier
// call has found or made its directory without it.
func (l *learner) files(h *history) {
	known := map[string]bool{} // whether a file was there before the calls, by key
	for _, f := range l.model.Files {
		known[winpath.Fold(f.Path)] = true
	}
	for _, at := range h.order {
		if _, seen := known[at.key]; seen || at.parent == "" {
			continue
		}
		first := h.sights[at.key][0]
		if known[at.key] = first.before != gone && h.wasThere(at, first.seq, known); known[at.key] {
			l.model.Files = append(l.model.Files, h.fileAt(at, first, l.hasVolume))
		}
	}
	slices.SortStableFunc(l.model.Files, func(a, b winsim.File) int { return len(a.Path) - len(b.Path) })
}

// wasThere reports whether a file that a call has found can have been there before all calls.
func (h *history) wasThere(at place, seq uint64, known map[string]bool) bool {
	for parent := at.parent; parent != ""; parent, _ = parentOf(parent) {
		if lists := h.lists[parent]; len(lists) > 0 && lists[0] < seq {
			return false
		}
		if was, seen := known[parent]; seen {
			return was
		}
	}
	return true
}

// hasVolume reports whether the node has a volume from the beginning.
func (l *learner) hasVolume(id string) bool {
	has := func(v winsim.Volume) bool { return strings.EqualFold(v.ID, id) }
	return slices.ContainsFunc(l.model.Volumes, has) || slices.ContainsFunc(l.model.Disks, func(d winsim.Disk) bool {
		return slices.ContainsFunc(d.Partitions, func(p winsim.Partition) bool { return p.Volume != nil && has(*p.Volume) })
	})
}

// targets learns those that lists have, except one that the next list lacks: a single list is a difference. They
// get the order of the longest list of them.
func (l *learner) targets(calls []record.Call) {
	var lists [][]string
	for _, c := range calls {
		var names []string
		if c.Method == "ReportTargets" && c.Error == nil && json.Unmarshal(c.Out, &names) == nil {
			lists = append(lists, names)
		}
	}
	believed := map[string]bool{}
	for i, names := range lists {
		for _, name := range names {
			if i == len(lists)-1 || slices.Contains(lists[i+1], name) {
				believed[name] = true
			}
		}
	}
	for i, names := range lists {
		lists[i] = slices.DeleteFunc(names, func(name string) bool { return !believed[name] })
	}
	slices.SortStableFunc(lists, func(a, b []string) int { return len(b) - len(a) })
	for _, name := range slices.Concat(lists...) {
		l.target(name)
	}
}

// discovery learns portals, and targets of which a call tells a portal. It does not learn what a target holds.
func (l *learner) discovery(c record.Call) {
	if c.Error != nil {
		return
	}
	var (
		in struct {
			Portal win.TargetPortal
			Target string
			Login  win.Login
		}
		portals []win.TargetPortal
	)
	if json.Unmarshal(c.In, &in) != nil {
		return
	}
	switch c.Method {
	case "AddSendTargetPortal":
		l.portal(in.Portal)
	case "ReportTargetPortals":
		if json.Unmarshal(c.Out, &portals) == nil {
			l.leadsTo(in.Target, portals...)
		}
	case "Login":
		if in.Login.Portal.Address != "" {
			l.leadsTo(in.Login.Target, in.Login.Portal)
		}
	}
}

// leadsTo learns portals of a target.
func (l *learner) leadsTo(target string, portals ...win.TargetPortal) {
	t := l.target(target)
	for _, p := range portals {
		l.portal(p)
		if !slices.Contains(t.Portals, p.String()) {
			t.Portals = append(t.Portals, p.String())
		}
	}
}

func (l *learner) portal(p win.TargetPortal) {
	known := &l.model.ISCSI.Portals
	if !slices.ContainsFunc(*known, func(k winsim.ISCSIPortal) bool { return k.Address == p.Address && k.Port == p.Port }) {
		*known = append(*known, winsim.ISCSIPortal{Address: p.Address, Port: p.Port})
	}
}

// target returns the target of the model with a name.
func (l *learner) target(name string) *winsim.ISCSITarget {
	known := &l.model.ISCSI.Targets
	at := slices.IndexFunc(*known, func(t winsim.ISCSITarget) bool { return strings.EqualFold(t.IQN, name) })
	if at < 0 {
		at = len(*known)
		*known = append(*known, winsim.ISCSITarget{IQN: name})
	}
	return &(*known)[at]
}

// mapping learns that a server and a user exist, and a share unless the password was wrong.
func (l *learner) mapping(c record.Call) {
	var in struct{ Request win.SMBMappingRequest }
	refused := c.Error != nil && c.Error.Windows == uint32(winerr.LogonFailure)
	if c.Error != nil && !refused || json.Unmarshal(c.In, &in) != nil {
		return
	}
	server, share, _ := strings.Cut(strings.TrimPrefix(in.Request.Remote, `\\`), `\`)
	at := slices.IndexFunc(l.model.SMBServers, func(s winsim.SMBServer) bool { return winpath.Equal(s.Name, server) })
	if at < 0 {
		at = len(l.model.SMBServers)
		l.model.SMBServers = append(l.model.SMBServers, winsim.SMBServer{Name: server, Guest: true})
	}
	s := &l.model.SMBServers[at]
	if !refused && !slices.ContainsFunc(s.Shares, func(known winsim.SMBShare) bool { return winpath.Equal(known.Name, share) }) {
		s.Shares = append(s.Shares, winsim.SMBShare{Name: share})
	}
	if user := in.Request.User; user != "" && !slices.ContainsFunc(s.Accounts, func(a winsim.SMBAccount) bool { return winpath.Equal(a.User, user) }) {
		s.Accounts = append(s.Accounts, winsim.SMBAccount{User: user, Password: winsim.HiddenSecret})
	}
}
