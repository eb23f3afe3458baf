// Package smb is the library's view of the SMB client of a Windows node: connect
// a share with credentials for the whole node, link a folder to it, and
// disconnect it.
//
// Containers and pods never see the credentials: a global mapping belongs to the
// node, one per share, and everything on the node uses it. The package does not
// remove the links it makes; package filesystem does.
//
// Start with New, the host of this machine and a filesystem client:
//
//	shares, err := smb.New(smbapi.New(), files)
//
// The package compiles on every system. Elsewhere than on Windows that host
// fails each call with an error for which errors.Is(err, errors.ErrUnsupported)
// holds; a host of your own works everywhere.
//
// An SMB is safe for concurrent use if its host and its filesystem client are;
// those of this machine are. Every method may be repeated: a driver that lost an
// answer asks again.
package smb

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	fs "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

// Interface is what a driver can ask of the SMB client. Failures answer to the
// errors of the standard library: fs.ErrPermission for refused credentials,
// fs.ErrInvalid for a wrong request, and so on.
type Interface interface {
	// NewSMBGlobalMapping connects the node to a share and, if asked to, links
	// a folder to it. A mapping that works is kept with the credentials it was
	// made with; one that does not answer is made anew.
	NewSMBGlobalMapping(context.Context, *NewSMBGlobalMappingRequest) (*NewSMBGlobalMappingResponse, error)

	// RemoveSMBGlobalMapping disconnects the node from a share.
	RemoveSMBGlobalMapping(context.Context, *RemoveSMBGlobalMappingRequest) (*RemoveSMBGlobalMappingResponse, error)
}

var _ Interface = (*SMB)(nil)

// SMB implements Interface over a host.
type SMB struct {
	host smbapi.HostAPI
	fs   fs.Interface
}

// New returns an SMB that works on the given host and asks fsClient whether a
// share answers. Neither may be nil.
func New(hostAPI smbapi.HostAPI, fsClient fs.Interface) (*SMB, error) {
	const op = "open SMB library"
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "the host API is nil")
	}
	if fsClient == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "the filesystem client is nil")
	}
	return &SMB{host: hostAPI, fs: fsClient}, nil
}

// NewSMBGlobalMapping implements Interface.
func (s *SMB) NewSMBGlobalMapping(ctx context.Context, request *NewSMBGlobalMappingRequest) (*NewSMBGlobalMappingResponse, error) {
	const op = "map share"
	h, err := hostctx.Begin(ctx, op, s.host, request)
	if err != nil {
		return nil, err
	}
	remote, err := parseRemote(op, request.RemotePath)
	if err != nil {
		return nil, err
	}
	// Before the mapping, so that a wrong path leaves nothing behind.
	if request.LocalPath != "" {
		if err := fs.ValidatePathWindows(request.LocalPath); err != nil {
			return nil, winerr.Wrap("link folder", request.LocalPath, err)
		}
	}
	if err := s.connect(ctx, h, remote.share, request); err != nil {
		return nil, winerr.Wrap(op, remote.share, err)
	}
	if request.LocalPath != "" {
		if err := h.NewSMBLink(remote.path, request.LocalPath); err != nil {
			return nil, winerr.Wrap("link folder", request.LocalPath+" to "+remote.path, err)
		}
	}
	return &NewSMBGlobalMappingResponse{}, nil
}

// connect makes sure that a working mapping of the share exists.
func (s *SMB) connect(ctx context.Context, h smbapi.HostAPI, share string, request *NewSMBGlobalMappingRequest) error {
	mapped, err := h.IsSMBMapped(share)
	if err != nil {
		return err
	}
	if mapped {
		// A mapping outlives the session behind it: after a restart of either
		// side it is listed but dead until somebody makes it anew. Whatever
		// keeps the share from answering counts, unless it is our own caller
		// who left: pods may be using the mapping.
		answer, err := s.fs.PathValid(ctx, &fs.PathValidRequest{Path: share})
		if err == nil && answer != nil && answer.Valid {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := h.RemoveSMBGlobalMapping(share); err != nil {
			return err
		}
	}
	return h.NewSMBGlobalMapping(share, request.Username, request.Password)
}

// RemoveSMBGlobalMapping implements Interface.
func (s *SMB) RemoveSMBGlobalMapping(ctx context.Context, request *RemoveSMBGlobalMappingRequest) (*RemoveSMBGlobalMappingResponse, error) {
	const op = "unmap share"
	h, err := hostctx.Begin(ctx, op, s.host, request)
	if err != nil {
		return nil, err
	}
	remote, err := parseRemote(op, request.RemotePath)
	if err != nil {
		return nil, err
	}
	if err := h.RemoveSMBGlobalMapping(remote.share); err != nil {
		return nil, winerr.Wrap(op, remote.share, err)
	}
	return &RemoveSMBGlobalMappingResponse{}, nil
}
