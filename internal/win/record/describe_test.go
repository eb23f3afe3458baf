package record

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// hanging is a machine that refuses a call whose time is over, as Windows does, and on which some calls hang.
type hanging struct {
	win.Machine

	san, wmi bool
}

func hang(ctx context.Context, hangs bool) error {
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h hanging) SANPolicy(ctx context.Context) (win.SANPolicy, error) {
	return win.SANOnlineAll, hang(ctx, h.san)
}

func (h hanging) BIOSSerialNumber(ctx context.Context) (string, error) {
	return "serial", hang(ctx, h.wmi)
}

func (h hanging) SMBMappings(ctx context.Context) ([]win.SMBMapping, error) {
	return make([]win.SMBMapping, 1), hang(ctx, h.wmi)
}

func (h hanging) DiskDevices(ctx context.Context) ([]win.Device, error) {
	if err := hang(ctx, false); err != nil {
		return nil, err
	}
	return h.Machine.DiskDevices(ctx)
}

func (h hanging) VolumeIDs(ctx context.Context) ([]win.VolumeID, error) {
	if err := hang(ctx, false); err != nil {
		return nil, err
	}
	return h.Machine.VolumeIDs(ctx)
}

// TestDescribe_Hangs: a question that hangs costs the time of one question, and WMI as a whole does. All else is
// described.
func TestDescribe_Hangs(t *testing.T) {
	for _, test := range []struct {
		san, wmi bool
		most     time.Duration
	}{{false, false, 0}, {true, false, askTimeout}, {false, true, askTimeout}, {true, true, 2 * askTimeout}} {
		synctest.Test(t, func(t *testing.T) {
			m := hanging{machine{conductor: &planter{}}, test.san, test.wmi}
			began := time.Now() // the time of the bubble: exact on any machine
			d := Describe(t.Context(), m, []string{"MSiSCSI"})
			if took := time.Since(began); took > test.most {
				t.Errorf("%+v: it takes %s", test, took)
			}
			if len(d.Disks) != 1 || len(d.Volumes) != 1 || len(d.Targets) != 1 || len(d.Services) != 1 {
				t.Errorf("%+v: it has %d disks, %d volumes, %d targets and %d services", test, len(d.Disks), len(d.Volumes), len(d.Targets), len(d.Services))
			}
			if d.SANPolicy.Error != nil != test.san || d.BIOSSerial.Error != nil != test.wmi || len(d.Mappings) == 0 != test.wmi {
				t.Errorf("%+v: SAN policy %+v, serial number %+v, mappings %+v", test, d.SANPolicy, d.BIOSSerial, d.Mappings)
			}
		})
	}
}
