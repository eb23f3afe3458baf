package api

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"

// MappingReporter is a host that reports what it knows about mappings and Windows does not list. The
// option SMBHost of package node needs it. It changes nothing and asks no file server.
type MappingReporter interface {
	// MappingFacts returns what this process knows about the mapping of a share, without a call to
	// Windows.
	MappingFacts(remotePath string) MappingFacts

	// LiveLinks returns the links into a share that this process knows, by path, without those
	// that are gone. It reads each of them.
	LiveLinks(remotePath string) []string
}

// MappingFacts are what a process knows about a mapping.
type MappingFacts struct {
	// Created means that this process has created the mapping. Otherwise, user and privacy are
	// unknown.
	Created bool
	User    string // empty means the machine itself, or a guest
	Private bool   // it requires encryption
	// RemovalWaits means that the mapping goes when no link uses it any more.
	RemovalWaits bool
}

func (h host) mappingFacts(remotePath string) MappingFacts {
	remote, err := unc.Parse(opMappingFacts, remotePath)
	if err != nil {
		return MappingFacts{}
	}
	by, ours := h.state.mappings.of(remote.Share())
	return MappingFacts{Created: ours, User: by.name, Private: by.private, RemovalWaits: h.state.links.isPostponed(remote)}
}

// LiveLinks forgets no link: only removals do.
func (b boundHost) LiveLinks(remotePath string) []string {
	ctx, h := b.ctx, b.host
	remote, err := unc.Parse(opMappingFacts, remotePath)
	if err != nil {
		return nil
	}
	var live []string
	for _, known := range h.state.links.of(remote.Share()) {
		if h.leadsInto(ctx, known, remote.Share()) {
			live = append(live, known.path)
		}
	}
	return live
}
