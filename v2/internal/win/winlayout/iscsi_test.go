package winlayout_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

const targetName = "iqn.2001-04.com.example:storage"

// characters is a text as UTF-16, without a NUL.
func characters(text string) []uint16 { return utf16.Encode([]rune(text)) }

// The structures as iscsidsc.h declares them. Pointers are those of 64-bit Windows.
type (
	guid struct {
		Data1 uint32
		Data2 uint16
		Data3 uint16
		Data4 [8]byte
	}
	storageDeviceNumber struct {
		DeviceType      uint32
		DeviceNumber    uint32
		PartitionNumber uint32
	}
	scsiAddress struct {
		Length     uint32
		PortNumber byte
		PathID     byte
		TargetID   byte
		Lun        byte
	}
	iscsiTargetPortal struct {
		SymbolicName [256]uint16
		Address      [256]uint16
		Socket       uint16
	}
	iscsiTargetPortalInfo struct {
		InitiatorName       [256]uint16
		InitiatorPortNumber uint32
		SymbolicName        [256]uint16
		Address             [256]uint16
		Socket              uint16
	}
	iscsiLoginOptions struct {
		Version              uint32
		InformationSpecified uint32
		LoginFlags           uint32
		AuthType             uint32
		HeaderDigest         uint32
		DataDigest           uint32
		MaximumConnections   uint32
		DefaultTime2Wait     uint32
		DefaultTime2Retain   uint32
		UsernameLength       uint32
		PasswordLength       uint32
		Username             uint64
		Password             uint64
	}
	iscsiDeviceOnSession struct {
		InitiatorName       [256]uint16
		TargetName          [224]uint16
		ScsiAddress         scsiAddress
		DeviceInterfaceType guid
		DeviceInterfaceName [260]uint16
		LegacyName          [260]uint16
		StorageDeviceNumber storageDeviceNumber
		DeviceInstance      uint32
	}
)

// portalInMemory is an ISCSI_TARGET_PORTALW.
func portalInMemory(t testing.TB, symbolic, address string, port uint16) []byte {
	t.Helper()
	var p iscsiTargetPortal
	copy(p.SymbolicName[:], characters(symbolic))
	copy(p.Address[:], characters(address))
	p.Socket = port
	return pack(t, p)
}

func TestTargetPortal(t *testing.T) {
	first := win.TargetPortal{SymbolicName: "storage", Address: "10.0.0.10", Port: 3260}
	second := win.TargetPortal{Address: strings.Repeat("a", 255), Port: 65535}
	var list []byte
	for _, p := range []win.TargetPortal{first, second} {
		b, err := winlayout.EncodeTargetPortal(p)
		if want := portalInMemory(t, p.SymbolicName, p.Address, p.Port); err != nil || !bytes.Equal(b, want) || len(b) != winlayout.TargetPortalSize {
			t.Errorf("%s: %v, %d bytes that are not those of the structure", p, err, len(b))
		}
		list = append(list, b...)
	}
	got, err := winlayout.DecodeTargetPortals(list, 2)
	if diff := cmp.Diff([]win.TargetPortal{first, second}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, p := range []win.TargetPortal{{Address: strings.Repeat("a", 256)}, {SymbolicName: strings.Repeat("a", 256)}} {
		if _, err := winlayout.EncodeTargetPortal(p); err == nil {
			t.Error("a name that does not fit is cut")
		}
	}
	wantTruncated(t, list, 2, winlayout.DecodeTargetPortals)
}

// wantTruncated checks that no more elements are read than there are.
func wantTruncated[T any](t *testing.T, list []byte, count uint32, decode func([]byte, uint32) ([]T, error)) {
	t.Helper()
	for _, c := range []struct {
		b     []byte
		count uint32
	}{{list, count + 1}, {list, 0xFFFFFFFF}, {list[:len(list)-1], count}, {nil, 1}} {
		if got, err := decode(c.b, c.count); !errors.Is(err, winlayout.ErrTruncated) {
			t.Errorf("%d elements in %d bytes: %v, %v", c.count, len(c.b), got, err)
		}
	}
	if got, err := decode(list, 0); err != nil || len(got) != 0 {
		t.Errorf("no elements: %v, %v", got, err)
	}
}

func TestDecodeSendTargetPortals(t *testing.T) {
	var info iscsiTargetPortalInfo
	copy(info.InitiatorName[:], characters(`ROOT\ISCSIPRT\0000_0`))
	copy(info.SymbolicName[:], characters("name"))
	copy(info.Address[:], characters("fe80::1"))
	info.InitiatorPortNumber, info.Socket = 7, 3261
	list := pack(t, info, uint16(0xdddd)) // Go has no padding at the end here
	got, err := winlayout.DecodeSendTargetPortals(list, 1)
	want := []win.SendTargetPortal{{Portal: win.TargetPortal{SymbolicName: "name", Address: "fe80::1", Port: 3261}, InitiatorInstance: `ROOT\ISCSIPRT\0000_0`, InitiatorPort: 7}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	wantTruncated(t, list, 1, winlayout.DecodeSendTargetPortals)
}

func TestDecodeTargets(t *testing.T) {
	list := func(texts ...string) []byte { return pack(t, characters(strings.Join(texts, "\x00"))) }
	for _, c := range []struct {
		b    []byte
		want []string
	}{
		{nil, nil},
		{list("\x00"), nil},
		{list("a", "bc", "\x00"), []string{"a", "bc"}},
		{list("a", "\x00rest\x00"), []string{"a"}},
		{list("a", ""), []string{"a"}}, // the last NUL may be missing
	} {
		got, err := winlayout.DecodeTargets(c.b)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", c.b, err, diff)
		}
	}
	for name, b := range map[string][]byte{"no end": list("a", "b"), "too long": list(strings.Repeat("a", 300), "\x00")} {
		if got, err := winlayout.DecodeTargets(b); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestEncodeLoginOptions(t *testing.T) {
	user, secret := winlayout.Memory{Address: 0x1122334455667788, Length: 5}, winlayout.Memory{Address: 0x99AABBCCDDEEFF00, Length: 16}
	for name, c := range map[string]struct {
		auth         win.AuthType
		user, secret winlayout.Memory
		want         iscsiLoginOptions
	}{
		"none":         {win.NoAuth, user, secret, iscsiLoginOptions{InformationSpecified: 0x80}},
		"multipath":    {win.NoAuth, user, secret, iscsiLoginOptions{InformationSpecified: 0x80, LoginFlags: 2}},
		"one-way":      {win.OneWayCHAP, user, secret, iscsiLoginOptions{InformationSpecified: 0xE0, AuthType: 1, UsernameLength: 5, PasswordLength: 16, Username: user.Address, Password: secret.Address}},
		"mutual":       {win.MutualCHAP, user, secret, iscsiLoginOptions{InformationSpecified: 0xE0, AuthType: 2, UsernameLength: 5, PasswordLength: 16, Username: user.Address, Password: secret.Address}},
		"without user": {win.OneWayCHAP, winlayout.Memory{}, secret, iscsiLoginOptions{InformationSpecified: 0xC0, AuthType: 1, PasswordLength: 16, Password: secret.Address}},
	} {
		got := bytes.Repeat([]byte{0xdd}, winlayout.LoginOptionsSize)
		require.NoError(t, winlayout.EncodeLoginOptions(got, c.auth, c.want.LoginFlags != 0, c.user, c.secret))
		w := c.want // with the padding before the pointers
		want := pack(t, w.Version, w.InformationSpecified, w.LoginFlags, w.AuthType, make([]byte, 20), w.UsernameLength, w.PasswordLength, uint32(0), w.Username, w.Password)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if err := winlayout.EncodeLoginOptions(make([]byte, 63), win.NoAuth, false, user, secret); !errors.Is(err, winlayout.ErrTruncated) {
		t.Errorf("into 63 bytes: %v", err)
	}
}

func TestDecodePersistentLogins(t *testing.T) {
	b := make([]byte, 2080)
	put := func(offset int, text string) { copy(b[offset:], pack(t, characters(text))) }
	put(0, targetName)
	put(450, `ROOT\ISCSIPRT\0000_0`)
	binary.LittleEndian.PutUint32(b[964:], 0xFFFFFFFF)
	copy(b[968:], portalInMemory(t, "x", "10.0.0.10", 3260))
	got, err := winlayout.DecodePersistentLogins(append(b, b...), 2)
	one := win.PersistentLogin{
		Target: targetName, InitiatorInstance: `ROOT\ISCSIPRT\0000_0`, InitiatorPort: win.AnyInitiatorPort,
		Portal: win.TargetPortal{SymbolicName: "x", Address: "10.0.0.10", Port: 3260},
	}
	if diff := cmp.Diff([]win.PersistentLogin{one, one}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	wantTruncated(t, b, 1, winlayout.DecodePersistentLogins)
}

// sessionsAt is a list of one session as Windows writes it to memory at base, with the pointers
// moved by the given distances.
func sessionsAt(t testing.TB, base uint64, connections uint32, moved ...int64) []byte {
	t.Helper()
	name := pack(t, characters(targetName+"\x00"))
	at := []int64{64, 64 + int64(len(name)), 64 + 2*int64(len(name))} // the two names, and the connections
	for i, distance := range moved {
		at[i] += distance
	}
	b := pack(t, uint64(0x11), uint64(0x22), uint64(0), base+uint64(at[0]), base+uint64(at[1]), make([]byte, 8), connections, uint32(0xdddddddd), base+uint64(at[2]),
		name, name)
	address := base + uint64(len(b)) + 40*uint64(connections)
	for range connections {
		b = append(b, pack(t, make([]byte, 24), address, uint16(50000), uint16(3260), uint32(0))...)
	}
	return append(b, pack(t, characters("10.0.0.10\x00"))...)
}

func TestDecodeSessions(t *testing.T) {
	const base = 0x7ff612340000
	want := []win.Session{{ID: win.SessionID{AdapterUnique: 0x11, AdapterSpecific: 0x22}, TargetNodeName: targetName, TargetName: targetName, Connections: 2}}
	portal := win.TargetPortal{Address: "10.0.0.10", Port: 3260}
	want[0].Portals = []win.TargetPortal{portal, portal}
	got, err := winlayout.DecodeSessions(sessionsAt(t, base, 2), base, 1)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// A session without connections points nowhere.
	b := sessionsAt(t, base, 0)
	binary.LittleEndian.PutUint64(b[56:], 0)
	binary.LittleEndian.PutUint64(b[24:], 0)
	if got, err := winlayout.DecodeSessions(b, base, 1); err != nil || got[0].Connections != 0 || got[0].TargetNodeName != "" {
		t.Errorf("without connections: %+v, %v", got, err)
	}
	for name, b := range map[string][]byte{
		"a name before the list":         sessionsAt(t, base, 1, -65),
		"a name behind the list":         sessionsAt(t, base, 1, 0, 1<<20),
		"a name far away":                sessionsAt(t, base, 1, 1<<60),
		"a name without an end":          sessionsAt(t, base, 0)[:64+2*(len(targetName)+1)+2*len(targetName)],
		"connections before the list":    sessionsAt(t, base, 1, 0, 0, -1<<20),
		"connections that end too early": sessionsAt(t, base, 1, 0, 0, 40),
		"more connections than there are": func() []byte {
			b := sessionsAt(t, base, 1)
			binary.LittleEndian.PutUint32(b[48:], 0xFFFFFFFF)
			return b
		}(),
	} {
		if got, err := winlayout.DecodeSessions(b, base, 1); !errors.Is(err, winlayout.ErrMalformed) || got != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	wantTruncated(t, sessionsAt(t, base, 0)[:64], 1, func(b []byte, count uint32) ([]win.Session, error) {
		return winlayout.DecodeSessions(b, base, count)
	})
}

func TestSessionID(t *testing.T) {
	id := win.SessionID{AdapterUnique: 0x1122334455667788, AdapterSpecific: 3}
	b := winlayout.EncodeSessionID(id)
	if want := pack(t, uint64(0x1122334455667788), uint64(3)); !bytes.Equal(b, want) {
		t.Errorf("the id is %x, want %x", b, want)
	}
	truncate(t, b, len(b), winlayout.DecodeSessionID)
	if got, err := winlayout.DecodeSessionID(b); err != nil || got != id {
		t.Errorf("read again it is %v, %v", got, err)
	}
}

func TestDecodeSessionDevices(t *testing.T) {
	var device iscsiDeviceOnSession
	copy(device.TargetName[:], characters(targetName))
	copy(device.LegacyName[:], characters(`\\.\PhysicalDrive4`))
	device.ScsiAddress = scsiAddress{Length: 8, PortNumber: 1, PathID: 2, TargetID: 3, Lun: 5}
	device.StorageDeviceNumber = storageDeviceNumber{DeviceType: 7, DeviceNumber: 4, PartitionNumber: 0xFFFFFFFF}
	list := pack(t, device)
	got, err := winlayout.DecodeSessionDevices(list, 1)
	want := []win.SessionDevice{{LUN: 5, Device: win.DeviceNumber{Type: win.DeviceTypeDisk, Number: 4, Partition: 0xFFFFFFFF}, LegacyName: `\\.\PhysicalDrive4`}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	wantTruncated(t, list, 1, winlayout.DecodeSessionDevices)
}

func FuzzDecodeSessions(f *testing.F) {
	f.Add(sessionsAt(f, 4096, 1), uint64(4096), uint32(1))
	f.Add(sessionsAt(f, 0, 0), uint64(0), uint32(1))
	f.Add(sessionsAt(f, 1<<63, 1, 8), uint64(1<<63), uint32(2))
	f.Fuzz(func(t *testing.T, b []byte, base uint64, count uint32) {
		sessions, err := winlayout.DecodeSessions(b, base, count)
		if err == nil && uint64(len(sessions)) != uint64(count) {
			t.Fatalf("%d of %d sessions", len(sessions), count)
		}
		for _, s := range sessions {
			if len(s.TargetName) > 3*256 || len(s.TargetNodeName) > 3*256 {
				t.Fatalf("names of %d and %d bytes", len(s.TargetNodeName), len(s.TargetName))
			}
		}
	})
}

// FuzzDecodeISCSILists is for the lists that point nowhere.
func FuzzDecodeISCSILists(f *testing.F) {
	f.Add(portalInMemory(f, "a", "10.0.0.10", 3260), uint32(1))
	f.Add(make([]byte, 4080), uint32(2))
	f.Add([]byte("a\x00b\x00\x00\x00\x00\x00"), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, count uint32) {
		if portals, err := winlayout.DecodeTargetPortals(b, count); err == nil {
			for _, p := range portals {
				again, err := winlayout.EncodeTargetPortal(p)
				// A name may fill its array, which we never write.
				if err == nil && len(again) != winlayout.TargetPortalSize {
					t.Fatalf("%q is written in %d bytes", p, len(again))
				}
			}
		}
		_, _ = winlayout.DecodeSendTargetPortals(b, count)
		_, _ = winlayout.DecodeSessionDevices(b, count)
		_, _ = winlayout.DecodePersistentLogins(b, count)
		_, _ = winlayout.DecodeSessionID(b)
		if names, err := winlayout.DecodeTargets(b); err == nil && len(names) > len(b)/4 {
			t.Fatalf("%d names in %d bytes", len(names), len(b))
		}
	})
}
