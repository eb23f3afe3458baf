package inventory

import (
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/kubelet"
)

// Users are the pods, persistent volumes and drivers that use a volume or a share, as the paths of
// kubelet name them.
type Users struct {
	Pods    []string `json:"pods"`              // UIDs
	PVs     []string `json:"persistentVolumes"` // names
	Drivers []string `json:"drivers"`           // names
}

// usersOf reads them from paths.
func usersOf(paths []string) Users {
	users := Users{Pods: []string{}, PVs: []string{}, Drivers: []string{}}
	for _, path := range paths {
		found, ok := kubelet.Parse(path)
		if !ok {
			continue
		}
		add(&users.Pods, found.PodUID)
		add(&users.PVs, found.PV)
		add(&users.Drivers, found.Driver)
	}
	return users
}

func add(list *[]string, name string) {
	if name == "" {
		return
	}
	if at, known := slices.BinarySearch(*list, name); !known {
		*list = slices.Insert(*list, at, name)
	}
}

// UsersOf returns the pods, persistent volumes and drivers that a warning affects.
func UsersOf(w Warning) Users { return usersOf(append([]string{w.Object.ID}, w.Affects...)) }
