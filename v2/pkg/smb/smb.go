// Package smb is the library's view of the SMB client of a Windows node: connect
// a share with credentials for the whole node, link a folder to it, and
// disconnect it.
//
// Containers and pods never see the credentials: a global mapping belongs to the
// node, one per share, and everything on the node uses it. To remove a link, use package
// filesystem.
//
// Start with New, the host of this machine and a filesystem client:
//
//	shares, err := smb.New(smbapi.New(), files)
//
// Remote paths are \\server\share or a directory in a share, with either kind of slash.
// The package refuses devices, web servers, administrative shares such as \\server\C$, and
// ".." anywhere in the path. Package filesystem explains local paths.
//
// On systems other than Windows that host fails with errors.ErrUnsupported; a host of your own works everywhere.
//
// An SMB is safe for concurrent use if its host and its filesystem client are; those of this
// machine are. Every method can be repeated, for example when an answer was lost. Calls about
// one server wait for each other, and identical calls at the same time run once. A caller whose
// context ends gets its answer at once; the work goes on in Windows, and a repeated call joins
// it.
package smb

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
	fs "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

// Interface is what a driver can ask of the SMB client. Errors match the sentinels of the
// standard library: fs.ErrPermission for refused credentials, fs.ErrInvalid for a wrong
// request, and so on.
type Interface interface {
	// NewSMBGlobalMapping connects the node to a share and, with a local path, links a folder
	// to it. It keeps a mapping that works, with the credentials it was created with, and
	// recreates one that does not work unless another volume needs it. The link is a directory
	// symbolic link. If the same link exists the call succeeds; anything else there is
	// fs.ErrExist. Refused credentials, and a folder outside the working directories, are
	// fs.ErrPermission. A share that the server does not have is fs.ErrNotExist, and with a local
	// path so is a directory that the share does not have.
	NewSMBGlobalMapping(context.Context, *NewSMBGlobalMappingRequest) (*NewSMBGlobalMappingResponse, error)

	// RemoveSMBGlobalMapping disconnects the node from a share, unless a link still uses it:
	// a link that this process has made or, with WorkingDirs, any link in those directories.
	// Without WorkingDirs it removes only mappings that this process has created, because it
	// cannot know what uses the others. The call succeeds in all these cases, also if the share
	// is not mapped. It does not remove links.
	RemoveSMBGlobalMapping(context.Context, *RemoveSMBGlobalMappingRequest) (*RemoveSMBGlobalMappingResponse, error)
}

var _ Interface = (*SMB)(nil)

// SMB implements Interface over a host.
type SMB struct {
	host smbapi.HostAPI
	fs   fs.Interface
}

// New returns an SMB that works on the given host. If the host is not a smbapi.Extended,
// New uses fsClient to find out whether a share answers. Neither may be nil.
func New(hostAPI smbapi.HostAPI, fsClient fs.Interface, options ...Option) (*SMB, error) {
	const op = "open SMB library"
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "the host API is nil")
	}
	if fsClient == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "the filesystem client is nil")
	}
	s := &SMB{host: hostAPI, fs: fsClient}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, winerr.As(winerr.Invalid, op, "", err, "")
		}
	}
	return s, nil
}

// Option changes how the group behaves.
type Option func(*SMB) error

// WorkingDirs allows links only in the given directories, as the option of package filesystem
// does. Every link to a share in these directories keeps the mapping of that share.
//
// The host must be one of package hostapi or winsim.
func WorkingDirs(dirs ...string) Option {
	return func(s *SMB) (err error) {
		s.host, err = policy.Limit(s.host, dirs)
		return err
	}
}

// UnsafeWorkingDirs is WorkingDirs that also accepts roots of drives and folders of Windows, programs and users.
func UnsafeWorkingDirs(dirs ...string) Option {
	return func(s *SMB) (err error) {
		s.host, err = policy.LimitUnsafe(s.host, dirs)
		return err
	}
}

// RequirePrivacy says whether servers must encrypt what they send and receive, which is the
// default. Servers that cannot encrypt are refused.
//
// The host must be one of package hostapi or winsim.
func RequirePrivacy(required bool) Option {
	return func(s *SMB) (err error) {
		s.host, err = private(s.host, required)
		return err
	}
}

// RefuseOtherUser fails a call for a share that is mapped for another user, or by another process
// for a user that is not known, while other links use it. Without this option, such a call uses
// the mapping, with the rights of its user. User names are compared as they are written, without
// case. Passwords are not compared: Windows uses the one that the mapping was created with.
//
// The host must be one of package hostapi or winsim.
func RefuseOtherUser(refuse bool) Option {
	return func(s *SMB) (err error) {
		s.host, err = sameUser(s.host, refuse)
		return err
	}
}

func sameUser(host smbapi.HostAPI, required bool) (smbapi.HostAPI, error) {
	checker, ok := host.(smbapi.Extended)
	if !ok {
		return host, fmt.Errorf("a host of type %T cannot refuse another user", host)
	}
	return checker.WithSameUser(required), nil
}

func private(host smbapi.HostAPI, required bool) (smbapi.HostAPI, error) {
	setter, ok := host.(smbapi.Extended)
	if !ok {
		return host, fmt.Errorf("a host of type %T cannot be set to require encryption", host)
	}
	return setter.WithPrivacy(required), nil
}

// configure applies what a request says about its own mapping.
func configure(host smbapi.HostAPI, request *NewSMBGlobalMappingRequest) (_ smbapi.HostAPI, err error) {
	switch request.Privacy {
	case PrivacyDefault:
	case PrivacyRequired, PrivacyNotRequired:
		host, err = private(host, request.Privacy == PrivacyRequired)
	default:
		err = fmt.Errorf("%d is not a value of Privacy", request.Privacy)
	}
	if err == nil && request.RefuseOtherUser {
		host, err = sameUser(host, true)
	}
	return host, winerr.As(winerr.Invalid, opMap, "", err, "")
}

// LinksGone removes the mappings whose removal waits for links at or below a local path, if no
// link uses them any more. It does nothing if the host is not a smbapi.Extended. Pass it to
// filesystem.OnRemove if your driver asks for the removal of a mapping before it removes its
// link.
func (s *SMB) LinksGone(ctx context.Context, path string) {
	h, err := hostctx.Begin(ctx, "unmap unused shares", s.host, &struct{}{})
	if err != nil {
		return // the next call about the server does it
	}
	if watcher, ok := h.(smbapi.Extended); ok {
		watcher.LinksGone(path)
	}
}

// NewSMBGlobalMapping implements Interface.
func (s *SMB) NewSMBGlobalMapping(ctx context.Context, request *NewSMBGlobalMappingRequest) (*NewSMBGlobalMappingResponse, error) {
	return hostctx.Fill(ctx, opMap, s.host, request, func(h smbapi.HostAPI, _ *NewSMBGlobalMappingResponse) error {
		remote, err := unc.Parse(opMap, request.RemotePath)
		if err != nil {
			return err
		}
		if err := checkAccount(opMap, request.Username, request.Password); err != nil {
			return err
		}
		if h, err = configure(h, request); err != nil {
			return err
		}
		if mapper, ok := h.(smbapi.Extended); ok {
			err = mapper.MapSMBShare(request.RemotePath, request.LocalPath, request.Username, request.Password)
		} else {
			err = s.mapAndLink(ctx, h, remote, request)
		}
		return winerr.Wrap(opMap, remote.Share(), err)
	})
}

const (
	opMap  = "map share"
	opLink = "link folder"
)

// mapAndLink maps a share on a host that knows only single steps. It makes the checks that an
// Extended makes itself, before the first step, so that a wrong request leaves nothing behind.
func (s *SMB) mapAndLink(ctx context.Context, h smbapi.HostAPI, remote unc.Path, request *NewSMBGlobalMappingRequest) error {
	if err := remote.CheckMappable(opMap); err != nil {
		return err
	}
	local := ""
	if request.LocalPath != "" {
		var err error
		if local, err = winpath.Clean(request.LocalPath); err != nil {
			return winerr.As(winerr.Invalid, opLink, "", err, "")
		}
	}
	if err := s.connect(ctx, h, remote.Share(), request); err != nil {
		return err
	}
	if local == "" {
		return nil
	}
	return winerr.Wrap(opLink, local+" to "+remote.Directory(), h.NewSMBLink(remote.Directory(), local))
}

// connect makes sure that a working mapping of the share exists.
func (s *SMB) connect(ctx context.Context, h smbapi.HostAPI, share string, request *NewSMBGlobalMappingRequest) error {
	mapped, err := h.IsSMBMapped(share)
	if err != nil {
		return err
	}
	if mapped {
		// A mapping outlives its session: after a restart of either side it is listed, but
		// dead until it is recreated. Any failure of the share counts as dead, unless the
		// caller has left: pods may be using the mapping.
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
	return hostctx.Fill(ctx, op, s.host, request, func(h smbapi.HostAPI, _ *RemoveSMBGlobalMappingResponse) error {
		remote, err := unc.Parse(op, request.RemotePath)
		if err != nil {
			return err
		}
		if request.ExceptLink == "" {
			return winerr.Wrap(op, remote.Share(), h.RemoveSMBGlobalMapping(remote.Share()))
		}
		x, err := hostctx.Extended[smbapi.Extended](h, op, remote.Share())
		if err != nil {
			return err
		}
		local, err := winpath.Clean(request.ExceptLink)
		if err != nil {
			return winerr.As(winerr.Invalid, op, remote.Share(), err, "")
		}
		return winerr.Wrap(op, remote.Share(), x.RemoveSMBGlobalMappingExcept(remote.Share(), local))
	})
}
