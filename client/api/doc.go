// Package api is the root of the published CSI Proxy API. Each directory
// <group>/<version> below it holds one version of one group: the .proto file and
// the Go code generated from it. Drivers were compiled against these versions and
// still call them, so none of them ever changes; frozen.txt pins all names, numbers
// and types, and a test compares it with the generated code.
//
// The newest versions, for new callers: disk v1, filesystem v1, smb v1, volume v1,
// iscsi v1alpha2 and system v1alpha1. filesystem v2alpha1 and volume v2alpha1 add a
// call each to their v1.
//
// The package itself holds WindowsError, a detail of the status of a failed call, and
// CmdletError, which no call uses any more.
package api
