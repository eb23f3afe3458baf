package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// MappingFacts are what a process knows about a mapping.
type MappingFacts struct {
	// Created means that this process has created the mapping. Otherwise, user and privacy are
	// unknown.
	Created bool
	User    string // empty means the machine itself, or a guest
	Private bool   // it requires encryption
	// RemovalWaits means that the mapping goes when no link uses it any more.
	RemovalWaits bool
	// Changes is another number when this process has made the mapping again, or a call has found that it works.
	Changes uint64
}

func (h host) mappingFacts(remotePath string) MappingFacts {
	remote, err := unc.Parse(opMappingFacts, remotePath)
	if err != nil {
		return MappingFacts{}
	}
	by, ours := h.state.mappings.of(remote.Share())
	return MappingFacts{
		Created: ours, User: by.name, Private: by.private, RemovalWaits: h.state.links.isPostponed(remote),
		Changes: h.state.mappings.changesOf(remote.Share()),
	}
}

// LiveLinks forgets no link: only removals do.
func (b boundHost) LiveLinks(ctx context.Context, remotePath string) []string {
	h := b.host
	remote, err := unc.Parse(opMappingFacts, remotePath)
	if err != nil {
		return nil
	}
	var live []string
	for _, known := range h.state.links.of(remote.Share()) {
		if leads, _ := h.leadsInto(ctx, known, remote.Share()); leads {
			live = append(live, known.path)
		}
	}
	return live
}
