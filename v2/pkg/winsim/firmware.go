package winsim

import (
	"context"
	"slices"
)

// firmware is what the firmware reports. It never changes.
type firmware struct {
	table     []byte
	wmiSerial string
}

// FirmwareTable and BIOSSerialNumber implement the seam.
func (f *firmware) FirmwareTable(context.Context) ([]byte, error) { return slices.Clone(f.table), nil }

func (f *firmware) BIOSSerialNumber(context.Context) (string, error) { return f.wmiSerial, nil }
