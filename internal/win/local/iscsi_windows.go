package local

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// All of these are calls to the service MSiSCSI, which does one thing at a time and waits for
// targets and for Plug and Play.

func (machine) ReportSendTargetPortals(ctx context.Context) ([]win.SendTargetPortal, error) {
	return within(ctx, askInitiator, "portals", func() ([]win.SendTargetPortal, error) {
		return decodeList(winlayout.SendTargetPortalSize, winapi.SendTargetPortals, winlayout.DecodeSendTargetPortals)
	})
}

// AddSendTargetPortal waits for the answer of the portal, and so does RefreshSendTargetPortal.
func (machine) AddSendTargetPortal(ctx context.Context, portal win.TargetPortal) error {
	return act(ctx, askPortal, portal.Key(), func() error {
		b, err := encodePortal(portal)
		if err != nil {
			return err
		}
		return winapi.AddSendTargetPortal(win.AnyInitiatorPort, b)
	})
}

func (machine) RefreshSendTargetPortal(ctx context.Context, portal win.TargetPortal) error {
	return act(ctx, askPortal, portal.Key(), func() error {
		b, err := encodePortal(portal)
		if err != nil {
			return err
		}
		return winapi.RefreshSendTargetPortal(win.AnyInitiatorPort, b)
	})
}

func (machine) RemoveSendTargetPortal(ctx context.Context, portal win.SendTargetPortal) error {
	return act(ctx, askInitiator, portal.Portal.Key(), func() error {
		b, err := encodePortal(portal.Portal)
		if err != nil {
			return err
		}
		return winapi.RemoveSendTargetPortal(portal.InitiatorInstance, portal.InitiatorPort, b)
	})
}

func (machine) ReportTargets(ctx context.Context) ([]string, error) {
	return within(ctx, askInitiator, "targets", func() ([]string, error) {
		b, err := winapi.ISCSITargets()
		if err != nil {
			return nil, err
		}
		return sensible(winlayout.DecodeTargets(b))
	})
}

func (machine) ReportTargetPortals(ctx context.Context, target string) ([]win.TargetPortal, error) {
	return within(ctx, askInitiator, win.FoldTarget(target), func() ([]win.TargetPortal, error) {
		ask := func(size int) ([]byte, error) { return winapi.ISCSITargetPortals(target, size) }
		return decodeList(winlayout.TargetPortalSize, ask, winlayout.DecodeTargetPortals)
	})
}

// Login copies the secret: it may still need it after its caller has left and wiped it.
func (machine) Login(ctx context.Context, login win.Login) (win.SessionID, error) {
	login.Secret = login.Secret.Clone()
	return within(ctx, loginTarget, win.FoldTarget(login.Target), func() (win.SessionID, error) {
		defer login.Secret.Wipe()
		portal, err := encodePortal(login.Portal)
		if err != nil {
			return win.SessionID{}, err
		}
		user, secret := []byte(login.User), login.Secret.Bytes()
		session, err := winapi.LoginISCSITarget(winapi.ISCSILogin{
			Target:        login.Target,
			InitiatorPort: win.AnyInitiatorPort,
			Portal:        portal,
			User:          user,
			Secret:        secret,
			OptionsSize:   winlayout.LoginOptionsSize,
			Options: func(options []byte, userAt, secretAt uint64) error {
				return winlayout.EncodeLoginOptions(options, login.Auth, login.Multipath,
					winlayout.Memory{Address: userAt, Length: winapi.Length(user)},
					winlayout.Memory{Address: secretAt, Length: winapi.Length(secret)})
			},
			SessionSize: winlayout.SessionIDSize,
		})
		if err != nil {
			return win.SessionID{}, err
		}
		return sensible(winlayout.DecodeSessionID(session))
	})
}

func (machine) Sessions(ctx context.Context) ([]win.Session, error) {
	return within(ctx, askInitiator, "sessions", func() ([]win.Session, error) {
		b, base, count, err := winapi.ISCSISessions()
		if err != nil {
			return nil, err
		}
		return sensible(winlayout.DecodeSessions(b, base, count))
	})
}

func (machine) DevicesForSession(ctx context.Context, id win.SessionID) ([]win.SessionDevice, error) {
	return within(ctx, askInitiator, sessionName(id), func() ([]win.SessionDevice, error) {
		ask := func(size int) ([]byte, error) {
			return winapi.ISCSISessionDevices(winlayout.EncodeSessionID(id), size)
		}
		return decodeList(winlayout.SessionDeviceSize, ask, winlayout.DecodeSessionDevices)
	})
}

// Logout waits until all programs have let go of the disks, or for a target that does not
// answer: minutes.
func (machine) Logout(ctx context.Context, id win.SessionID) error {
	return act(ctx, logoutTarget, sessionName(id), func() error {
		return winapi.LogoutISCSITarget(winlayout.EncodeSessionID(id))
	})
}

// PersistentLogins overwrites the credentials that come with the answer.
func (machine) PersistentLogins(ctx context.Context) ([]win.PersistentLogin, error) {
	return within(ctx, askInitiator, "persistent logins", func() ([]win.PersistentLogin, error) {
		b, count, err := winapi.ISCSIPersistentLogins()
		if err != nil {
			return nil, err
		}
		defer clear(b)
		return sensible(winlayout.DecodePersistentLogins(b, count))
	})
}

func (machine) RemovePersistentTarget(ctx context.Context, login win.PersistentLogin) error {
	return act(ctx, askInitiator, win.FoldTarget(login.Target), func() error {
		portal, err := encodePortal(login.Portal)
		if err != nil {
			return err
		}
		return winapi.RemoveISCSIPersistentLogin(login.InitiatorInstance, login.InitiatorPort, login.Target, portal)
	})
}

// SetInitiatorCHAPSharedSecret copies the secret, as Login does.
func (machine) SetInitiatorCHAPSharedSecret(ctx context.Context, secret win.Secret) error {
	secret = secret.Clone()
	return act(ctx, askInitiator, "shared secret", func() error {
		defer secret.Wipe()
		return winapi.SetISCSISharedSecret(secret.Bytes())
	})
}

func sessionName(id win.SessionID) string {
	return fmt.Sprintf("%x-%x", id.AdapterUnique, id.AdapterSpecific)
}

// encodePortal fails like Windows with names that are too long for its structure.
func encodePortal(portal win.TargetPortal) ([]byte, error) {
	return sensible(winlayout.EncodeTargetPortal(portal))
}

// decodeList asks for a list of structures of that size, and decodes all of it.
func decodeList[T any](size int, ask func(size int) ([]byte, error), decode func([]byte, uint32) ([]T, error)) ([]T, error) {
	b, err := ask(size)
	if err != nil {
		return nil, err
	}
	return sensible(decode(b, uint32(len(b)/size))) //nolint:gosec // winapi makes no list of more than 16 MiB
}

// sensible adds ERROR_INVALID_DATA (13) to the error about an answer that makes no sense.
func sensible[T any](value T, err error) (T, error) {
	if err != nil {
		return value, fmt.Errorf("%w: %w", errInvalidData, err)
	}
	return value, nil
}
