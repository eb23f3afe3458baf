package grpcapi

import (
	"context"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// Healer finds and removes stale mounts.
type Healer interface {
	Heal(ctx context.Context, options node.HealOptions) (*node.Healing, error)
}

// HealGroup is the group whose endpoints also find and remove stale mounts.
const HealGroup = "filesystem"

type healV1 struct{ healer Healer }

var _ extensionv1.HealerServer = healV1{}

func newHealV1(s Services) any {
	if s.Healer == nil {
		return nil
	}
	return healV1{s.Healer}
}

func (s healV1) Heal(ctx context.Context, in *extensionv1.HealRequest) (*extensionv1.HealResponse, error) {
	found, err := s.healer.Heal(ctx, node.HealOptions{Remove: !in.DryRun})
	if err != nil {
		return nil, err
	}
	out := &extensionv1.HealResponse{Live: uint32(found.Live), Problems: wireProblems(found.Problems)}
	for _, stale := range found.Stale {
		wire := &extensionv1.Link{
			Path: wireText(stale.Path), Target: wireText(stale.Target), Stale: lineText(wireText(stale.Cause)),
			State: string(stale.State), Reason: lineText(wireText(stale.Reason)),
		}
		if !stale.Changed.IsZero() {
			wire.ChangedUnix = stale.Changed.Unix()
		}
		out.Stale = append(out.Stale, wire)
	}
	return out, nil
}
