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
	SANPolicy      SANPolicy `yaml:"sanPolicy"`      // the state of new disks; the default is online-all
	OfflineAgain   int       `yaml:"offlineAgain"`   // how many times the partition manager takes a disk offline again, 20 ms after it came online
	AttachByRescan bool      `yaml:"attachByRescan"` // hides an attached disk until a rescan of its adapter

	RawEntries      bool           `yaml:"rawEntries"`      // makes disks without a partition table show four empty entries, as ReactOS does, instead of none
	CreateDiskMSR   MSRPolicy      `yaml:"createDiskMSR"`   // when a new GPT gets a reserved partition automatically; the default is never
	CapacityFollows CapacityPolicy `yaml:"capacityFollows"` // what makes Windows see the new size of a disk; the default is update
	CapacityDelay   time.Duration  `yaml:"capacityDelay"`   // the delay until the partition table covers the new space
	TableLags       bool           `yaml:"tableLags"`       // the partition table does not cover the new space of a disk until the storage service resizes a partition
	GrowDelay       time.Duration  `yaml:"growDelay"`       // the delay from the growth of a partition to that of its volume

	VolumeArrival    time.Duration   `yaml:"volumeArrival"`    // the delay until a volume appears, after a change of the partition table or after its disk came online
	ArrivalTrouble   time.Duration   `yaml:"arrivalTrouble"`   // how long after that its file system fails with ERROR_UNRECOGNIZED_VOLUME (1005)
	ForeignVolumeIDs bool            `yaml:"foreignVolumeIDs"` // gives new volumes other GUIDs than their partitions have
	Automount        AutomountPolicy `yaml:"automount"`        // the policy for new volumes; the default is on
	LoseMountNotices bool            `yaml:"loseMountNotices"` // the mount manager does not list folders at which volumes are mounted

	ServiceDelay     time.Duration `yaml:"serviceDelay"`     // the delay until the storage service knows a new volume, unless its cache is refreshed
	ServiceOutOfDate int           `yaml:"serviceOutOfDate"` // how many formats the storage service refuses with 40003 (cache out of date), unless its cache is refreshed
	FormatTime       time.Duration `yaml:"formatTime"`       // the duration of a format
	NoReFS           bool          `yaml:"noReFS"`           // an edition of Windows that cannot format with ReFS
}

// SANPolicy is DISK_SAN_POLICY. Windows Server has OfflineShared; images for clouds, and the zero value, have OnlineAll.
type SANPolicy string

const (
	OnlineAll     SANPolicy = "online-all"
	OfflineShared SANPolicy = "offline-shared" // disks on a shared bus arrive offline and read-only
	OfflineAll    SANPolicy = "offline-all"
)

// MSRPolicy is when a Microsoft reserved partition appears on a new GPT; the default is MSRNever.
type MSRPolicy string

const (
	MSRNever  MSRPolicy = "never"
	MSRAtOnce MSRPolicy = "at-once"
	MSRLate   MSRPolicy = "late" // 100 ms later, if there is room and no other yet
)

// CapacityPolicy is what makes Windows read the size of a disk again, beside a rescan; the default is CapacityUpdate.
type CapacityPolicy string

const (
	CapacityUpdate CapacityPolicy = "update" // IOCTL_DISK_UPDATE_DRIVE_SIZE or _UPDATE_PROPERTIES
	CapacityRescan CapacityPolicy = "rescan" // only a rescan of the adapter
	CapacityAtOnce CapacityPolicy = "at-once"
)

// AutomountPolicy is what the mount manager does with new volumes; the default is AutomountOn.
type AutomountPolicy string

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

func quoted[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = strconv.Quote(string(value))
	}
	return strings.Join(words, ", ")
}
