//go:build !windows

package local

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func (machine) ReportSendTargetPortals(context.Context) ([]win.SendTargetPortal, error) {
	return nil, ErrNotWindows
}

func (machine) AddSendTargetPortal(context.Context, win.TargetPortal) error { return ErrNotWindows }

func (machine) RefreshSendTargetPortal(context.Context, win.TargetPortal) error {
	return ErrNotWindows
}

func (machine) RemoveSendTargetPortal(context.Context, win.SendTargetPortal) error {
	return ErrNotWindows
}

func (machine) ReportTargets(context.Context) ([]string, error) { return nil, ErrNotWindows }

func (machine) ReportTargetPortals(context.Context, string) ([]win.TargetPortal, error) {
	return nil, ErrNotWindows
}

func (machine) Login(context.Context, win.Login) (win.SessionID, error) {
	return win.SessionID{}, ErrNotWindows
}

func (machine) Sessions(context.Context) ([]win.Session, error) { return nil, ErrNotWindows }

func (machine) DevicesForSession(context.Context, win.SessionID) ([]win.SessionDevice, error) {
	return nil, ErrNotWindows
}

func (machine) Logout(context.Context, win.SessionID) error { return ErrNotWindows }

func (machine) PersistentLogins(context.Context) ([]win.PersistentLogin, error) {
	return nil, ErrNotWindows
}

func (machine) RemovePersistentTarget(context.Context, win.PersistentLogin) error {
	return ErrNotWindows
}

func (machine) SetInitiatorCHAPSharedSecret(context.Context, win.Secret) error { return ErrNotWindows }
