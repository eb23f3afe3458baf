package winapi

// Grow is grow.
var Grow = grow

// ConfigError is the error of a CONFIGRET.
func ConfigError(ret uint32) error { return configRet(ret).err() }
