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

func (machine) ReportSendTargetPortals(_ context.Context) ([]win.SendTargetPortal, error) {
	return decodeList(winlayout.SendTargetPortalSize, winapi.SendTargetPortals, winlayout.DecodeSendTargetPortals)
}

// AddSendTargetPortal waits for the answer of the portal, and so does RefreshSendTargetPortal.
func (machine) AddSendTargetPortal(_ context.Context, portal win.TargetPortal) error {
	b, err := encodePortal(portal)
	if err != nil {
		return err
	}
	return winapi.AddSendTargetPortal(win.AnyInitiatorPort, b)
}

func (machine) RefreshSendTargetPortal(_ context.Context, portal win.TargetPortal) error {
	b, err := encodePortal(portal)
	if err != nil {
		return err
	}
	return winapi.RefreshSendTargetPortal(win.AnyInitiatorPort, b)
}

func (machine) RemoveSendTargetPortal(_ context.Context, portal win.SendTargetPortal) error {
	b, err := encodePortal(portal.Portal)
	if err != nil {
		return err
	}
	return winapi.RemoveSendTargetPortal(portal.InitiatorInstance, portal.InitiatorPort, b)
}

func (machine) ReportTargets(_ context.Context) ([]string, error) {
	b, err := winapi.ISCSITargets()
	if err != nil {
		return nil, err
	}
	return sensible(winlayout.DecodeTargets(b))
}

func (machine) ReportTargetPortals(_ context.Context, target string) ([]win.TargetPortal, error) {
	ask := func(size int) ([]byte, error) { return winapi.ISCSITargetPortals(target, size) }
	return decodeList(winlayout.TargetPortalSize, ask, winlayout.DecodeTargetPortals)
}

func (machine) Login(_ context.Context, login win.Login) (win.SessionID, error) {
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
}

func (machine) Sessions(_ context.Context) ([]win.Session, error) {
	b, base, count, err := winapi.ISCSISessions()
	if err != nil {
		return nil, err
	}
	return sensible(winlayout.DecodeSessions(b, base, count))
}

func (machine) DevicesForSession(_ context.Context, id win.SessionID) ([]win.SessionDevice, error) {
	ask := func(size int) ([]byte, error) {
		return winapi.ISCSISessionDevices(winlayout.EncodeSessionID(id), size)
	}
	return decodeList(winlayout.SessionDeviceSize, ask, winlayout.DecodeSessionDevices)
}

// Logout waits until all programs have let go of the disks, or for a target that does not
// answer: minutes.
func (machine) Logout(_ context.Context, id win.SessionID) error {
	return winapi.LogoutISCSITarget(winlayout.EncodeSessionID(id))
}

// PersistentLogins overwrites the credentials that come with the answer.
func (machine) PersistentLogins(_ context.Context) ([]win.PersistentLogin, error) {
	b, count, err := winapi.ISCSIPersistentLogins()
	if err != nil {
		return nil, err
	}
	defer clear(b)
	return sensible(winlayout.DecodePersistentLogins(b, count))
}

func (machine) RemovePersistentTarget(_ context.Context, login win.PersistentLogin) error {
	portal, err := encodePortal(login.Portal)
	if err != nil {
		return err
	}
	return winapi.RemoveISCSIPersistentLogin(login.InitiatorInstance, login.InitiatorPort, login.Target, portal)
}

func (machine) SetInitiatorCHAPSharedSecret(_ context.Context, secret win.Secret) error {
	return winapi.SetISCSISharedSecret(secret.Bytes())
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
