package record

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// hasher replaces names and serial numbers by hashes. Its key is random and never written, so that a
// name cannot be found by trying. Equal names have equal hashes within a recording.
type hasher struct{ key [32]byte }

func newHasher() *hasher {
	h := &hasher{}
	_, _ = rand.Read(h.key[:]) // never fails
	return h
}

// content is what a text or its bytes hold.
type content int

const (
	aName     content = iota // of a person's choice, or a serial number: hashed as a whole. It is the default.
	aPath                    // of a file or share: hashed name by name
	aTarget                  // an iSCSI name: hashed, and still one
	aList                    // an access list: its accounts and conditions are hashed
	anAdapter                // a device instance id: what is hashed is the last part, which can be a serial number
	aPlace                   // of a device. A disk that is a file has the path of that file
	public                   // names that Windows and drivers have chosen
	removed                  // bytes that hold serial numbers or data
)

// contents are the texts that are not names, by type and field, by method and argument, and for results by
// method.
var contents = map[string]content{
	"Path.Base":                  aPath,
	"Path.Rest":                  aPath,
	"ReparsePoint.Substitute":    aPath,
	"ReparsePoint.Print":         aPath,
	"SMBMapping.Remote":          aPath,
	"SMBMappingRequest.Remote":   aPath,
	"SMBMapping.remote":          aPath,
	"RemoveSMBMapping.remote":    aPath,
	"CreateDirectoryLink.target": aPath,
	"VolumeOfDrive.root":         aPath,
	"DirEntry.Name":              aPath,
	"VolumePaths":                aPath,
	"Volume.Paths":               aPath,
	"Location":                   aPath,

	"Login.Target":               aTarget,
	"Session.TargetNodeName":     aTarget,
	"Session.TargetName":         aTarget,
	"PersistentLogin.Target":     aTarget,
	"ReportTargetPortals.target": aTarget,
	"ReportTargets":              aTarget,
	"Target.Name":                aTarget,

	"RootSecurity":               aList,
	"SetRootSecurity.accessList": aList,
	"Volume.RootAccess":          aList,

	"StorageAdapters":       anAdapter,
	"Description.Adapters":  anAdapter,
	"RescanAdapter.adapter": anAdapter,

	"DeviceLocation": aPlace,
	"Disk.Location":  aPlace,

	"DeviceDescriptor.Vendor":            public,
	"DeviceDescriptor.Product":           public,
	"SCSIAddress.BusNumber":              public,
	"SendTargetPortal.InitiatorInstance": public,
	"PersistentLogin.InitiatorInstance":  public,
	"SessionDevice.LegacyName":           public,
	"FileSystemInfo.Name":                public,
	"ServiceConfig.DisplayName":          public,
	"ServiceConfig.name":                 public,
	"ServiceStatus.name":                 public,
	"StartService.name":                  public,
	"StopService.name":                   public,
	"ActiveDependents.name":              public,
	"ActiveDependents":                   public,
	"Service.Name":                       public,
	"Failure.Context":                    public,
	"Failure.Kind":                       public,

	"Failure.Text":           removed,
	"DeviceIdentifier.Value": aName,
	"FirmwareTable":          removed,
	"Description.Firmware":   removed,
	"Description.Snapshot":   removed,
}

// asTheyAre are the types without names.
var asTheyAre = map[reflect.Type]bool{
	reflect.TypeFor[win.Secret]():   true, // it is never written
	reflect.TypeFor[win.VolumeID](): true,
	reflect.TypeFor[win.GUID]():     true,
	reflect.TypeFor[time.Time]():    true,
}

// targetBuses are those of disks that another machine can serve. There, an administrator chooses the product:
// LIO takes the name of the backstore.
var targetBuses = map[win.BusType]bool{win.BusTypeFibre: true, win.BusTypeISCSI: true, win.BusTypeSAS: true}

// arguments returns arguments with hashes.
func (h *hasher) arguments(method string, arguments in) in {
	hashed := make(in, len(arguments))
	for i, a := range arguments {
		is, listed := contents[method+"."+a.name]
		if !listed && a.name == "name" {
			is = aPath // of an entry of a directory, which is hashed as in a path
		}
		hashed[i] = argument{a.name, h.hashed(a.value, is)}
	}
	return hashed
}

// hashed returns a copy of a value with hashes.
func (h *hasher) hashed(value any, is content) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return nil
	}
	return h.copyOf(v, is).Interface()
}

func (h *hasher) copyOf(v reflect.Value, is content) reflect.Value {
	if asTheyAre[v.Type()] {
		return v
	}
	made := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		made.SetString(h.text(v, is))
	case reflect.Pointer:
		if !v.IsNil() {
			made.Set(reflect.New(v.Type().Elem()))
			made.Elem().Set(h.copyOf(v.Elem(), is))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			of := is // an Answer is about the field that it is in
			if name := typeName(v.Type()); name != "Answer" {
				of = contents[name+"."+v.Type().Field(i).Name]
			}
			made.Field(i).Set(h.copyOf(v.Field(i), of))
		}
		if d, ok := reflect.TypeAssert[win.DeviceDescriptor](v); ok && targetBuses[d.BusType] && d.Product != "" {
			d := made.Addr().Interface().(*win.DeviceDescriptor) //nolint:forcetypeassert // it is a copy
			d.Product = h.sum(winpath.Fold(d.Product))
		}
	case reflect.Slice:
		switch {
		case v.Type() == reflect.TypeFor[buffer]():
			made.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		case is == removed:
		case v.Type().Elem().Kind() == reflect.Uint8:
			made.SetBytes(h.bytes(v.Bytes()))
		case !v.IsNil():
			made.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				made.Index(i).Set(h.copyOf(v.Index(i), is))
			}
		}
	default: // numbers and booleans
		made.Set(v)
	}
	return made
}

// typeName is the name of a type without its type parameters.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

func (h *hasher) text(v reflect.Value, is content) string {
	text := v.String()
	switch {
	case text == "" || is == public:
		return text
	case is == removed:
		return ""
	case v.Type() == reflect.TypeFor[win.Device]():
		return h.device(text)
	case is == aPlace && !strings.Contains(text, winpath.Separator):
		return text // such as "PCI Slot 3 : Adapter 1 : Port 0 : Target 0 : LUN 2"
	case is == aPath, is == aPlace:
		return h.path(text)
	case is == aTarget:
		return "iqn.2000-01.hashed:" + h.sum(strings.ToLower(text))
	case is == aList:
		return h.list(text)
	case is == anAdapter:
		return h.adapter(text)
	default:
		return h.sum(winpath.Fold(text))
	}
}

// sum is the hash of a name.
func (h *hasher) sum(name string) string { return "h-" + hex.EncodeToString(h.mac([]byte(name))[:8]) }

// bytes is the hash of an identifier, as long as the identifier.
func (h *hasher) bytes(identifier []byte) []byte {
	mac := h.mac(identifier)
	return bytes.Repeat(mac, 1+len(identifier)/len(mac))[:len(identifier)]
}

func (h *hasher) mac(text []byte) []byte {
	mac := hmac.New(sha256.New, h.key[:])
	mac.Write(text)
	return mac.Sum(nil)
}

var (
	// sameEverywhere are the accounts that are the same on every machine: the codes of SDDL, and well-known
	// SIDs. Among them are TrustedInstaller and the users of containers.
	// https://learn.microsoft.com/windows-server/identity/ad-ds/manage/understand-security-identifiers
	sameEverywhere = regexp.MustCompile(`(?i)^(?:|[A-Z]{2}|S-1-(?:0-0|1-0|2-[01]|3-[0-4]|5-(?:[1-46-9]|1[0-57-9]|20|33|113|114|1000)|5-32-\d{3}|5-64-(?:10|14|21)|5-65-1|` +
		`5-80-(?:0|956008885-3418522649-1831038044-1853292631-2271478464)|5-83-0|5-90-0|5-93-2-[12]|15-2-[12]|16-\d{1,5}|18-[1-6]))$`)
	// ownerOrFlags is a part of an access list that is not an entry.
	ownerOrFlags = regexp.MustCompile(`(?i)^(?:([OG]:)(S-\d+(?:-(?:0x[0-9A-F]+|\d+))+|[A-Z]{2})|[DS]:(?:P|AR|AI|NO_ACCESS_CONTROL)*)`)
	// listEntry is an entry of an access list: what comes before the account, the account, and a condition.
	listEntry = regexp.MustCompile(`(?is)^\(([A-Z]{1,2};[A-Z]*;(?:0x[0-9A-F]+|\d+|[A-Z]*);[0-9A-F-]*;[0-9A-F-]*;)([^;()]*)(;.*)?\)$`)
	// numberedByWindows is the last part of a device instance id that holds no serial number.
	// https://learn.microsoft.com/windows-hardware/drivers/install/instance-ids
	numberedByWindows = regexp.MustCompile(`(?i)^(?:\d{1,4}|[0-9a-f](?:&[0-9a-f]+)+)$`)
	// namedByWindows are the names of a path that Windows or kubelet have chosen.
	namedByWindows = regexp.MustCompile(`(?i)^(?:|[?.]+|[a-z]:|unc|globalroot|device|harddisk\d+|partition\d+|physicaldrive\d+|volume\{[0-9a-f-]+\}|` +
		`windows|system volume information|\$recycle\.bin|var|lib|kubelet|plugins|plugins_registry|pods|volumes|volume-subpaths|kubernetes\.io|kubernetes\.io~csi|csi|pv|globalmount|mount)$`)
	// deviceByNumber are the devices whose names hold no serial number.
	deviceByNumber = regexp.MustCompile(`(?i)^\\\\[.?]\\(?:physicaldrive\d+|volume\{[0-9a-f-]+\}|globalroot\\device\\harddisk\d+\\partition\d+)$`)
)

// path hashes each name of a path that neither Windows nor kubelet has chosen.
func (h *hasher) path(path string) string {
	names := strings.Split(path, winpath.Separator)
	for i, name := range names {
		if !namedByWindows.MatchString(name) {
			names[i] = h.sum(winpath.Fold(name))
		}
	}
	return strings.Join(names, winpath.Separator)
}

// device hashes the interface path of a device: some hold its serial number.
func (h *hasher) device(path string) string {
	if deviceByNumber.MatchString(path) {
		return path
	}
	return `\\?\` + h.sum(winpath.Fold(path))
}

// adapter hashes the last part of a device instance id, unless Windows has made it up.
func (h *hasher) adapter(id string) string {
	at := strings.LastIndex(id, winpath.Separator) + 1
	if at > 0 && numberedByWindows.MatchString(id[at:]) {
		return id
	}
	return id[:at] + h.sum(winpath.Fold(id[at:]))
}

// list hashes the accounts and conditions of an access list, and what is none.
func (h *hasher) list(text string) string {
	var made strings.Builder
	for text != "" {
		part := ownerOrFlags.FindStringSubmatch(text)
		length := len(text)
		switch {
		case part != nil && part[1] == "":
			length = len(part[0])
			made.WriteString(part[0])
		case part != nil:
			length = len(part[0])
			made.WriteString(part[1] + h.account(part[2]))
		case text[0] == '(':
			length = entryLength(text)
			made.WriteString(h.entry(text[:length]))
		default:
			made.WriteString(h.sum(text))
		}
		text = text[length:]
	}
	return made.String()
}

// entryLength is the length of the entry with which a text begins. A condition has parentheses and quoted texts.
func entryLength(text string) int {
	depth, quoted := 0, false
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

func (h *hasher) entry(text string) string {
	parts := listEntry.FindStringSubmatch(text)
	switch {
	case parts == nil:
		return "(" + h.sum(text) + ")"
	case parts[3] == "":
		return "(" + parts[1] + h.account(parts[2]) + ")"
	default:
		return "(" + parts[1] + h.account(parts[2]) + ";(" + h.sum(parts[3]) + "))"
	}
}

// account hashes an account, unless it is the same on every machine. The hash is a SID, because an emulated node
// takes nothing else; no real one but S-1-0-0 has this authority.
func (h *hasher) account(sid string) string {
	if sameEverywhere.MatchString(sid) {
		return sid
	}
	mac := h.mac([]byte(strings.ToUpper(sid)))
	return fmt.Sprintf("S-1-0-%d-%d", binary.BigEndian.Uint32(mac), binary.BigEndian.Uint32(mac[4:]))
}
