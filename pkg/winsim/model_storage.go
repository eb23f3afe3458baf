package winsim

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Storage says how the storage stack of a node behaves. The zero value is a machine that
// does everything at once and without trouble; the presets are closer to life.
type Storage struct {
	// SANPolicy is the state in which new disks arrive.
	SANPolicy SANPolicy `yaml:"sanPolicy"`
	// OfflineAgain is how often the partition manager puts a disk offline again,
	// shortly after somebody took it online.
	OfflineAgain int `yaml:"offlineAgain"`
	// AttachByRescan hides an attached disk until its adapter is rescanned.
	AttachByRescan bool `yaml:"attachByRescan"`

	// CreateDiskMSR says whether a new GPT table gets a reserved partition by itself.
	CreateDiskMSR MSRPolicy `yaml:"createDiskMSR"`
	// CapacityFollows is what makes Windows see that a disk has grown.
	CapacityFollows CapacityPolicy `yaml:"capacityFollows"`
	// CapacityDelay is how much later the partition table gives the new space.
	CapacityDelay time.Duration `yaml:"capacityDelay"`
	// GrowDelay is how much later than its partition a volume is longer.
	GrowDelay time.Duration `yaml:"growDelay"`

	// VolumeArrival is how long after a change of the partition table, or after its
	// disk came online, a volume appears.
	VolumeArrival time.Duration `yaml:"volumeArrival"`
	// ArrivalTrouble is for how long after that its file system answers ArrivalError,
	// which is 1005 unless given.
	ArrivalTrouble time.Duration `yaml:"arrivalTrouble"`
	ArrivalError   uint32        `yaml:"arrivalError"`
	// ForeignVolumeIDs gives new volumes GUIDs that differ from their partition's.
	ForeignVolumeIDs bool `yaml:"foreignVolumeIDs"`
	// Automount is what becomes of new volumes.
	Automount AutomountPolicy `yaml:"automount"`

	// ServiceDelay is how long after its arrival the storage service knows a volume,
	// unless its cache is refreshed.
	ServiceDelay time.Duration `yaml:"serviceDelay"`
	// ServiceOutOfDate is how many formats the storage service refuses with 40003,
	// unless its cache is refreshed before.
	ServiceOutOfDate int `yaml:"serviceOutOfDate"`
	// FormatTime is how long a format takes.
	FormatTime time.Duration `yaml:"formatTime"`
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

// MSRPolicy says when a Microsoft reserved partition appears on a disk that was just
// initialised: Microsoft's documentation lets one expect each of these.
type MSRPolicy string

// The policies. The zero value is MSRNever.
const (
	MSRNever  MSRPolicy = "never"
	MSRAtOnce MSRPolicy = "at-once"
	MSRLate   MSRPolicy = "late" // 100 ms later, where there is still room and none yet
)

// CapacityPolicy says what makes Windows look at the size of a disk again.
type CapacityPolicy string

// The policies. The zero value is CapacityUpdate. A rescan always does it.
const (
	CapacityUpdate CapacityPolicy = "update" // IOCTL_DISK_UPDATE_DRIVE_SIZE or _UPDATE_PROPERTIES
	CapacityRescan CapacityPolicy = "rescan" // only a rescan of the adapter
	CapacityAtOnce CapacityPolicy = "at-once"
)

// AutomountPolicy says what the mount manager does with volumes that arrive.
// https://learn.microsoft.com/windows-server/administration/windows-commands/automount
type AutomountPolicy string

// The policies. The zero value is AutomountOn. Without automount, as after mountvol /N, a
// volume waits for IOCTL_VOLUME_ONLINE; whether it has a name until then is not documented.
const (
	AutomountOn       AutomountPolicy = "on"
	AutomountOffline  AutomountPolicy = "offline"  // it has a name, and answers 21
	AutomountNameless AutomountPolicy = "nameless" // only the device of its partition is there
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

// oneOf accepts the zero value, which is the default, and those listed.
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
