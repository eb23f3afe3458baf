package winsim

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Storage is the behaviour of a node's storage stack. The zero value does everything at once
// and without errors; the presets are more realistic.
type Storage struct {
	// SANPolicy is the state of new disks; the default is online-all.
	SANPolicy SANPolicy `yaml:"sanPolicy" json:"sanPolicy,omitzero"`
	// OfflineAgain is how many times the partition manager takes a disk offline again, 20 ms
	// after it came online.
	OfflineAgain int `yaml:"offlineAgain" json:"offlineAgain,omitzero"`
	// AttachByRescan hides an attached disk until a rescan of its adapter.
	AttachByRescan bool `yaml:"attachByRescan" json:"attachByRescan,omitzero"`

	// RawEntries makes disks without a partition table show four empty entries, as ReactOS
	// does. By default they show none. Which one Windows does is not documented.
	RawEntries bool `yaml:"rawEntries" json:"rawEntries,omitzero"`
	// CreateDiskMSR is when a new GPT gets a reserved partition automatically; the default is never.
	CreateDiskMSR MSRPolicy `yaml:"createDiskMSR" json:"createDiskMSR,omitzero"`
	// CapacityFollows is what makes Windows see the new size of a disk; the default is update.
	CapacityFollows CapacityPolicy `yaml:"capacityFollows" json:"capacityFollows,omitzero"`
	// CapacityDelay is the delay until the partition table covers the new space.
	CapacityDelay time.Duration `yaml:"capacityDelay" json:"capacityDelay,omitzero"`
	// TableLags means that the partition table does not cover the new space of a disk until the
	// storage service resizes a partition.
	TableLags bool `yaml:"tableLags" json:"tableLags,omitzero"`
	// GrowDelay is the delay from the growth of a partition to that of its volume.
	GrowDelay time.Duration `yaml:"growDelay" json:"growDelay,omitzero"`

	// VolumeArrival is the delay until a volume appears, after a change of the partition table
	// or after its disk came online.
	VolumeArrival time.Duration `yaml:"volumeArrival" json:"volumeArrival,omitzero"`
	// ArrivalTrouble is how long after that its file system fails with ArrivalError, by default
	// ERROR_UNRECOGNIZED_VOLUME (1005).
	ArrivalTrouble time.Duration `yaml:"arrivalTrouble" json:"arrivalTrouble,omitzero"`
	ArrivalError   uint32        `yaml:"arrivalError" json:"arrivalError,omitzero"`
	// ForeignVolumeIDs gives new volumes other GUIDs than their partitions have.
	ForeignVolumeIDs bool `yaml:"foreignVolumeIDs" json:"foreignVolumeIDs,omitzero"`
	// Automount is the policy for new volumes; the default is on.
	Automount AutomountPolicy `yaml:"automount" json:"automount,omitzero"`
	// LoseMountNotices means that the mount manager does not learn of folders at which volumes
	// are mounted by SetMountPoint, and so does not list them.
	LoseMountNotices bool `yaml:"loseMountNotices" json:"loseMountNotices,omitzero"`

	// ServiceDelay is the delay until the storage service knows a new volume, unless its cache
	// is refreshed.
	ServiceDelay time.Duration `yaml:"serviceDelay" json:"serviceDelay,omitzero"`
	// ServiceOutOfDate is how many formats the storage service refuses with 40003 (cache out of
	// date), unless its cache is refreshed.
	ServiceOutOfDate int `yaml:"serviceOutOfDate" json:"serviceOutOfDate,omitzero"`
	// FormatTime is the duration of a format.
	FormatTime time.Duration `yaml:"formatTime" json:"formatTime,omitzero"`
}

// SANPolicy is DISK_SAN_POLICY.
// https://learn.microsoft.com/windows-server/administration/windows-commands/san
type SANPolicy string

// The policies. Windows Server's own default is OfflineShared; images for clouds, and
// the zero value, have OnlineAll.
const (
	OnlineAll     SANPolicy = "online-all"
	OfflineShared SANPolicy = "offline-shared" // disks on a shared bus arrive offline and read-only
	OfflineAll    SANPolicy = "offline-all"
)

// MSRPolicy is when a Microsoft reserved partition appears on a newly initialised disk.
// Microsoft's documentation allows each of these.
type MSRPolicy string

// The policies. The zero value is MSRNever.
const (
	MSRNever  MSRPolicy = "never"
	MSRAtOnce MSRPolicy = "at-once"
	MSRLate   MSRPolicy = "late" // 100 ms later, if there is room and no other yet
)

// CapacityPolicy is what makes Windows read the size of a disk again.
type CapacityPolicy string

// The policies. The zero value is CapacityUpdate. A rescan always does it.
const (
	CapacityUpdate CapacityPolicy = "update" // IOCTL_DISK_UPDATE_DRIVE_SIZE or _UPDATE_PROPERTIES
	CapacityRescan CapacityPolicy = "rescan" // only a rescan of the adapter
	CapacityAtOnce CapacityPolicy = "at-once"
)

// AutomountPolicy is what the mount manager does with new volumes.
// https://learn.microsoft.com/windows-server/administration/windows-commands/automount
type AutomountPolicy string

// The policies. The zero value is AutomountOn. Without automount, as after mountvol /N, a
// volume waits for IOCTL_VOLUME_ONLINE; whether it has a name until then is not documented.
const (
	AutomountOn       AutomountPolicy = "on"
	AutomountOffline  AutomountPolicy = "offline"  // it has a name, but fails with ERROR_NOT_READY (21)
	AutomountNameless AutomountPolicy = "nameless" // only the device of its partition exists
)

func (s Storage) validate() *ModelError {
	for _, err := range []*ModelError{
		oneOf("sanPolicy", s.SANPolicy, OnlineAll, OfflineShared, OfflineAll),
		oneOf("createDiskMSR", s.CreateDiskMSR, MSRNever, MSRAtOnce, MSRLate),
		oneOf("capacityFollows", s.CapacityFollows, CapacityUpdate, CapacityRescan, CapacityAtOnce),
		oneOf("automount", s.Automount, AutomountOn, AutomountOffline, AutomountNameless),
		notNegative("offlineAgain", s.OfflineAgain),
		notNegative("capacityDelay", s.CapacityDelay),
		notNegative("growDelay", s.GrowDelay),
		notNegative("volumeArrival", s.VolumeArrival),
		notNegative("arrivalTrouble", s.ArrivalTrouble),
		notNegative("serviceDelay", s.ServiceDelay),
		notNegative("serviceOutOfDate", s.ServiceOutOfDate),
		notNegative("formatTime", s.FormatTime),
	} {
		if err != nil {
			return err.in("storage")
		}
	}
	return nil
}

// oneOf accepts the known values and the zero value, which means the default.
func oneOf[T ~string](field string, value T, known ...T) *ModelError {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return problem(field, "%q is not one of %s", value, quoted(known))
}

func notNegative[T ~int | ~int64](field string, value T) *ModelError {
	if value < 0 {
		return problem(field, "must not be negative")
	}
	return nil
}

func quoted[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = strconv.Quote(string(value))
	}
	return strings.Join(words, ", ")
}
