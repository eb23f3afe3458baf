package winerr

import (
	"maps"
	"slices"
)

// KnownCodes returns every code that has a kind and a text.
func KnownCodes() []Code { return slices.Sorted(maps.Keys(codes)) }

// KnownStorageCodes returns every code that has a kind and a text.
func KnownStorageCodes() []StorageCode { return slices.Sorted(maps.Keys(storageCodes)) }

// KnownLegacyFormatCodes returns every code that has a kind and a text.
func KnownLegacyFormatCodes() []LegacyFormatCode { return slices.Sorted(maps.Keys(legacyFormatCodes)) }

// KnownISCSICodes returns every status of the iSCSI initiator that has a kind and a text.
func KnownISCSICodes() []Code { return slices.Sorted(maps.Keys(iscsiCodes)) }
