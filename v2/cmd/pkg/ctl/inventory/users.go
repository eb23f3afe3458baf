package inventory

import (
	"slices"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

// Users are the pods, persistent volumes and drivers that use a volume or a share, as the paths of
// kubelet name them.
type Users struct {
	Pods    []string // UIDs
	PVs     []string // names
	Drivers []string // names
}

// Members returns the users for scripts.
func (u Users) Members() output.Object {
	return output.Object{{Name: "pods", Value: u.Pods}, {Name: "persistentVolumes", Value: u.PVs}, {Name: "drivers", Value: u.Drivers}}
}

// Users returns the users of a volume.
func (n Node) Users(v *extensionv1.Volume) Users {
	return usersOf(append(n.LinksTo(v), v.GetMountPaths()...))
}

// AdministratorsOnly reports whether pods use a volume in whose root only administrators can create files, as after a format by
// Windows. It is not known if the server does not say who has access.
func (n Node) AdministratorsOnly(v *extensionv1.Volume) bool {
	if len(n.Users(v).Pods) == 0 {
		return false
	}
	if v.GetRootAccess() == "default" {
		return true
	}
	list, err := sddl.Parse(v.GetRootAccess())
	return err == nil && !list.Allows(sddl.AddFile, sddl.Users, sddl.AuthenticatedUsers, sddl.Everyone)
}

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

// usersOfProblem returns the pods, persistent volumes and drivers that a problem affects.
func usersOfProblem(p Problem) Users { return usersOf(append([]string{p.Object.ID}, p.Affects...)) }
