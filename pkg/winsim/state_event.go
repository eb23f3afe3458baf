package winsim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// eventState is a pending event. Kind decides which fields are used.
type eventState struct {
	Due      time.Time
	Kind     eventKind
	Disk     int      `json:",omitzero"`
	Volume   int      `json:",omitzero"`
	Session  int      `json:",omitzero"`
	Service  string   `json:",omitzero"`
	Table    win.GUID `json:",omitzero"`
	Absences int      `json:",omitzero"`
	Changes  int      `json:",omitzero"`

	Format win.FormatOptions `json:",omitzero"`
}

type eventKind string

const (
	savedVolumeArrival  eventKind = "volume arrives"
	savedVolumeGrowth   eventKind = "volume is as long as its partition"
	savedFormatEnd      eventKind = "format ends"
	savedTableMove      eventKind = "partition table moves"
	savedMSRArrival     eventKind = "reserved partition appears"
	savedOfflineRelapse eventKind = "disk goes offline again"
	savedLUNArrival     eventKind = "disks of a session arrive"
	savedPendingEnd     eventKind = "service leaves its pending state"
)

// events returns the pending events in order.
func (s *saver) events() []eventState {
	pending := slices.Clone(s.node.events)
	slices.SortFunc(pending, func(a, b *event) int {
		if c := a.due.Compare(b.due); c != 0 {
			return c
		}
		return a.order - b.order
	})
	var saved []eventState
	for _, e := range pending {
		var is eventState
		switch what := e.action.(type) {
		case volumeArrival:
			is = eventState{Kind: savedVolumeArrival, Volume: s.volumes.index(what.volume), Absences: what.absences}
		case volumeGrowth:
			is = eventState{Kind: savedVolumeGrowth, Volume: s.volumes.index(what.volume)}
		case *formatEnd:
			is = eventState{Kind: savedFormatEnd, Volume: s.volumes.index(what.volume), Absences: what.absences, Format: what.options}
		case tableMove:
			is = eventState{Kind: savedTableMove, Disk: s.disks.index(what.disk)}
		case msrArrival:
			is = eventState{Kind: savedMSRArrival, Disk: s.disks.index(what.disk), Table: what.table}
		case offlineRelapse:
			is = eventState{Kind: savedOfflineRelapse, Disk: s.disks.index(what.disk)}
		case lunArrival:
			at := slices.Index(s.node.initiator.sessions, what.session)
			if at < 0 {
				continue // the session has ended
			}
			is = eventState{Kind: savedLUNArrival, Session: at}
		case pendingEnd:
			is = eventState{Kind: savedPendingEnd, Service: what.service.Name, Changes: what.changes}
		default:
			panic(fmt.Sprintf("winsim: no rule to save %T", what))
		}
		is.Due = e.due
		saved = append(saved, is)
	}
	return saved
}

// events restores the pending events.
func (l *loader) events(saved []eventState) error {
	for _, s := range saved {
		what, err := l.event(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Kind, err)
		}
		l.node.plan(s.Due, what)
	}
	return nil
}

func (l *loader) event(s eventState) (eventAction, error) {
	switch s.Kind {
	case savedVolumeArrival, savedVolumeGrowth, savedFormatEnd:
		v, err := pick(l.volumes, s.Volume)
		return map[eventKind]eventAction{
			savedVolumeArrival: volumeArrival{l.node.volumes, v, s.Absences}, savedVolumeGrowth: volumeGrowth{v}, savedFormatEnd: &formatEnd{m: l.node.volumes, volume: v, absences: s.Absences, options: s.Format},
		}[s.Kind], err
	case savedTableMove, savedMSRArrival, savedOfflineRelapse:
		d, err := pick(l.disks, s.Disk)
		return map[eventKind]eventAction{
			savedTableMove: tableMove{d}, savedMSRArrival: msrArrival{l.node.disks, d, s.Table}, savedOfflineRelapse: offlineRelapse{l.node.disks, d},
		}[s.Kind], err
	case savedLUNArrival:
		session, err := pick(l.node.initiator.sessions, s.Session)
		return lunArrival{l.node.initiator, session}, err
	case savedPendingEnd:
		service, err := l.node.services.service(s.Service)
		return pendingEnd{l.node.services, service, s.Changes}, err
	default:
		return nil, errors.New("unknown event")
	}
}
