package winapi

// Grow is grow.
var Grow = grow

// ConfigError is the error of a CONFIGRET.
func ConfigError(ret uint32) error { return configRet(ret).err() }

// ISCSIError is the error of an ISDSC_STATUS.
func ISCSIError(status uint32) error { return isdscStatus(status).err() }

// GrowList asks for a list of the initiator until it fits.
func GrowList(unit, slack int, ask func(buffer []byte, room uint32) (uint32, error)) ([]byte, error) {
	return list{unit, slack}.fetch(ask)
}
