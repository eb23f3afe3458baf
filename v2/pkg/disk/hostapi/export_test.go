package api

// For the tests of what has no calls to a machine in it.
var (
	ParseLocation     = parseLocation
	Partitioned       = partitioned
	WithDataPartition = withDataPartition
)
