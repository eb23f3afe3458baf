package iscsi

import (
	"math"
	"net"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
)

// defaultPort is the port IANA assigned to iSCSI (RFC 7143, section 14).
const defaultPort = 3260

// toHost checks a portal and gives it the default port if it has none.
func toHost(op string, portal *TargetPortal) (*iscsiapi.TargetPortal, error) {
	if portal == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "the target portal is missing; set its address")
	}
	address, err := win.ParseAddress(portal.TargetAddress)
	if err != nil {
		return nil, winerr.As(winerr.Invalid, op, "", err, "")
	}
	if portal.TargetPort > math.MaxUint16 {
		return nil, winerr.New(winerr.Invalid, op, address, "port %d is invalid; the highest port is 65535", portal.TargetPort)
	}
	port := portal.TargetPort
	if port == 0 {
		port = defaultPort
	}
	return &iscsiapi.TargetPortal{Address: address, Port: port}, nil
}

// toHostWithIQN is toHost for calls that also name a target.
func toHostWithIQN(op string, portal *TargetPortal, iqn string) (*iscsiapi.TargetPortal, error) {
	if iqn == "" {
		return nil, winerr.New(winerr.Invalid, op, "", "the qualified name (IQN) of the target is empty")
	}
	if err := win.CheckTargetName(iqn); err != nil {
		return nil, winerr.As(winerr.Invalid, op, "", err, "")
	}
	return toHost(op, portal)
}

func address(portal *iscsiapi.TargetPortal) string {
	return net.JoinHostPort(portal.Address, strconv.FormatUint(uint64(portal.Port), 10))
}
