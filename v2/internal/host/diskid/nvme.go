package diskid

import (
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Model is the name that Windows shows for a disk: vendor and product. The vendor of NVMe disks is
// always "NVMe" and not part of it.
func Model(d win.DeviceDescriptor) string {
	if d.BusType == win.BusTypeNVMe && strings.EqualFold(d.Vendor, "NVMe") {
		return d.Product
	}
	return strings.TrimSpace(d.Vendor + " " + d.Product)
}

// NVMe returns the identifiers of an NVMe namespace, in lower-case hexadecimal digits: its EUI-64,
// 16 digits, and its NGUID, 32 digits. An identifier that the disk does not report is empty.
//
// On page 83 both have the type EUI-64, and a length of 8 and 16 bytes; they may also be there as
// text, "eui." and the digits. Windows also makes the serial number of them, with underscores
// and a full stop: "10CC_9636_B6E3_CE3B_0000_0000_0000_0000." is an EUI-64, padded to the length
// of an NGUID. The driver of Google Compute Engine knows disks by that
// (gcp-compute-persistent-disk-csi-driver#2114).
func NVMe(d win.DeviceDescriptor, identifiers []win.DeviceIdentifier) (eui64, nguid string) {
	note := func(digits string) {
		switch {
		case strings.Trim(digits, "0") == "": // which means that there is none
		case len(digits) == eui64Digits && eui64 == "":
			eui64 = digits
		case len(digits) == nguidDigits && nguid == "":
			nguid = digits
		}
	}
	if d.BusType != win.BusTypeNVMe {
		return "", ""
	}
	for _, id := range identifiers {
		switch {
		case id.Association != 0:
		case id.CodeSet == win.CodeSetBinary && id.Type == win.IdentifierEUI64:
			note(hex.EncodeToString(id.Value))
		case id.CodeSet != win.CodeSetBinary:
			if text := nvmeName.FindSubmatch(id.Value); text != nil {
				note(strings.ToLower(string(text[1])))
			}
		}
	}
	if eui64+nguid == "" && nvmeSerial.MatchString(d.Serial) {
		digits := strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(d.Serial, "."), "_", ""))
		if short, padded := strings.CutSuffix(digits, strings.Repeat("0", eui64Digits)); padded {
			digits = short
		}
		note(digits)
	}
	return eui64, nguid
}

const (
	eui64Digits = 16
	nguidDigits = 32
)

var (
	nvmeName   = regexp.MustCompile(`^eui\.([0-9a-fA-F]{16}|[0-9a-fA-F]{32})\x00*$`)
	nvmeSerial = regexp.MustCompile(`^[0-9A-F]{4}((_[0-9A-F]{4}){3}|(_[0-9A-F]{4}){7})\.$`)
)
