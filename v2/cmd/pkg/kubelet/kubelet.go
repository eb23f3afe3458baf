// Package kubelet reads the paths at which kubelet mounts CSI volumes: they name the driver, the
// pod and the persistent volume.
package kubelet

import "strings"

// Kind is what kubelet uses a path for. The words are stable.
type Kind string

// The kinds of paths.
const (
	Staging Kind = "staging" // of a volume, once per node
	Pod     Kind = "pod"     // of a volume in a pod
	Subpath Kind = "subpath" // of a part of a volume in a container
)

// Path is what kubelet's path says. What it does not say is empty.
type Path struct {
	Kind Kind
	// Driver is the name of the CSI driver. Only staging paths since Kubernetes 1.24 have it.
	Driver string
	// Handle is the SHA-256 of the driver's id of the volume, in the same staging paths.
	Handle string
	// PV is the name of the persistent volume, or of an inline volume of a pod.
	PV string
	// PodUID is the UID of the pod.
	PodUID string
	// Container is the name of the container of a subpath.
	Container string
}

// Directories of kubelet.
const (
	pods        = "pods"
	volumes     = "volumes"
	subpaths    = "volume-subpaths"
	csiVolumes  = "kubernetes.io~csi"
	mount       = "mount"
	plugins     = "plugins"
	kubernetes  = "kubernetes.io"
	csi         = "csi"
	globalmount = "globalmount"
	// byName is in place of the driver in paths before Kubernetes 1.24.
	// https://github.com/kubernetes/kubernetes/pull/107065
	byName = "pv"
)

// Parse reads a path in any working directory and in any letter case. It returns false for a path at
// which kubelet does not mount CSI volumes. What lies in a volume has the path of the volume.
//
//	...\plugins\kubernetes.io\csi\DRIVER\SHA256\globalmount
//	...\plugins\kubernetes.io\csi\pv\NAME\globalmount, before Kubernetes 1.24
//	...\pods\UID\volumes\kubernetes.io~csi\NAME\mount
//	...\pods\UID\volume-subpaths\NAME\CONTAINER\INDEX
func Parse(path string) (Path, bool) {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '\\' || r == '/' })
	// The first match counts: what follows may be files of a pod, which can have any names.
	for i := range parts {
		if found, ok := staging(parts[i:]); ok {
			return found, true
		}
		if found, ok := ofPod(parts[i:]); ok {
			return found, true
		}
	}
	return Path{}, false
}

func staging(parts []string) (Path, bool) {
	if len(parts) < 6 || !beginsWith(parts, plugins, kubernetes, csi) || !beginsWith(parts[5:], globalmount) {
		return Path{}, false
	}
	if beginsWith(parts[3:], byName) {
		return Path{Kind: Staging, PV: parts[4]}, true
	}
	return Path{Kind: Staging, Driver: parts[3], Handle: parts[4]}, true
}

func ofPod(parts []string) (Path, bool) {
	switch {
	case len(parts) < 6 || !beginsWith(parts, pods):
		return Path{}, false
	case beginsWith(parts[2:], volumes, csiVolumes) && beginsWith(parts[5:], mount):
		return Path{Kind: Pod, PodUID: parts[1], PV: parts[4]}, true
	case beginsWith(parts[2:], subpaths):
		return Path{Kind: Subpath, PodUID: parts[1], PV: parts[3], Container: parts[4]}, true
	default:
		return Path{}, false
	}
}

// beginsWith reports whether a path begins with these directories. Windows ignores the case of letters.
func beginsWith(parts []string, names ...string) bool {
	for i, name := range names {
		if i >= len(parts) || !strings.EqualFold(parts[i], name) {
			return false
		}
	}
	return true
}
