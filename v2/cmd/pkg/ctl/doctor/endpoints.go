package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
)

// endpoints checks that all endpoints answer, that they belong to one csi-proxy, and that it
// has the newest versions.
func (d examination) endpoints(_ context.Context, r *results) {
	const check = "endpoints"
	by, errs := map[endpoint.State][]string{}, map[endpoint.State]error{}
	pids := map[int][]string{}
	versions := map[string]bool{}
	var newestMissing []string
	for _, h := range d.health {
		by[h.State], errs[h.State] = append(by[h.State], h.Name.String()), h.Err
		if h.PID > 0 {
			pids[h.PID] = append(pids[h.PID], h.Name.String())
		}
		if h.State.Answers() {
			versions[h.Version] = true
		}
		if h.State == endpoint.Missing && h.Name.Version == endpoint.Newest(h.Name.Group) {
			newestMissing = append(newestMissing, h.Name.String())
		}
	}
	all, answering := len(endpoint.All()), len(by[endpoint.Serving])+len(by[endpoint.NoHealth])
	if names := by[endpoint.Silent]; len(names) > 0 {
		r.add(Error, check, "find the process with 'csi-proxyctl versions -o wide', stop it, then restart csi-proxy",
			"%s: the owner does not answer like csi-proxy: it hangs, or another program owns the pipe (%v)", list(names), errs[endpoint.Silent])
	}
	if names := by[endpoint.Denied]; len(names) > 0 {
		r.add(Error, check, d.admission(), "%s: %v", list(names), errs[endpoint.Denied])
	}
	if names := by[endpoint.Foreign]; len(names) > 0 {
		r.add(Error, check, "find the process with 'csi-proxyctl versions -o wide' and stop it, then restart csi-proxy; if the owner is right, pass --trusted-owner",
			"%s: %v", list(names), errs[endpoint.Foreign])
	}
	if names := by[endpoint.Dead]; len(names) > 0 {
		r.add(Error, check, "start the server; it replaces them", "%s: sockets without a server", list(names))
	}
	if names := by[endpoint.NotServing]; len(names) > 0 {
		r.add(Error, "health", "the daemon is stopping; if it does not end, read its log", "%s: not serving", list(names))
	}
	switch missing := by[endpoint.Missing]; {
	case len(missing) == all:
		r.add(Error, check, "start csi-proxy ('csi-proxyctl service start' on Windows, 'make run' for the emulated node), or set --endpoint-dir",
			"none found: no %s, and none of the others", d.Node.Path(endpoint.All()[0]))
		return
	case len(newestMissing) > 0:
		r.add(Warning, "version skew", "upgrade csi-proxy or extend its -api-groups; until then csi-proxyctl uses older versions",
			"the server does not serve the newest versions: %s", list(newestMissing))
	case len(missing) > 0:
		r.add(Info, "version skew", "", "the server does not serve older versions: %s", list(missing))
	}
	if len(pids) > 1 {
		var owners []string
		for _, pid := range slices.Sorted(maps.Keys(pids)) {
			owners = append(owners, fmt.Sprintf("process %d has %s", pid, list(pids[pid])))
		}
		r.add(Error, check, "run only one csi-proxy on a node: stop the other processes", "several processes own endpoints: %s", strings.Join(owners, "; "))
	}
	d.foreignOwners(r, pids)
	if answering == all {
		r.add(OK, check, "", "all %d answer", all)
	} else if answering > 0 {
		r.add(Info, check, "", "%d of %d answer", answering, all)
	}
	d.skew(r, versions)
	if n := len(by[endpoint.NoHealth]); n > 0 {
		r.add(Info, "health", "", "%d endpoints have no health service, like the original csi-proxy", n)
	} else if n := len(by[endpoint.Serving]); n > 0 && n == answering {
		r.add(OK, "health", "", "all healthy")
	}
}

// admission says which accounts may connect, and how to change that.
func (d examination) admission() string {
	if command, err := d.daemon.command(); err == nil {
		if descriptor := installation.PipeSecurityDescriptor(command); descriptor != "" {
			return "the service's -pipe-security-descriptor is " + descriptor + "; run this as an account that it admits"
		}
	}
	return "by default only LocalSystem and members of Administrators may connect: use an elevated prompt, or change the daemon's -pipe-security-descriptor"
}

// foreignOwners finds endpoints that belong to another process than the service.
func (d examination) foreignOwners(r *results, pids map[int][]string) {
	status := d.daemon.status
	if status.PID == 0 {
		return // the service check reports it
	}
	for _, pid := range slices.Sorted(maps.Keys(pids)) {
		if pid != int(status.PID) {
			r.add(Error, "endpoints", fmt.Sprintf("identify it with tasklist /svc /fi \"pid eq %d\" and stop it; then run csi-proxyctl service start", pid),
				"process %d owns %s, but the service %s is process %d: another csi-proxy, or another program", pid, list(pids[pid]), d.ServiceName, status.PID)
		}
	}
}

// skew compares the server's version with ours.
func (d Doctor) skew(r *results, versions map[string]bool) {
	delete(versions, "") // the original does not report its version
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		if version == d.Version {
			r.add(OK, "version skew", "", "server and csi-proxyctl are both %s", version)
		} else {
			r.add(Info, "version skew", "", "the server is %s, csi-proxyctl is %s; they work together", version, d.Version)
		}
	}
}

// list returns the first names and the number of the others.
func list(names []string) string {
	const few = 4
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
