//go:build !windows

package pipe

var CheckDir = checkDir

const MaxPath = maxPath
