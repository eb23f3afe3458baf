package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
)

// endpoints checks that csi-proxy, and nobody else, answers everywhere, and that it speaks
// the versions that we do.
func (d patient) endpoints(_ context.Context, f *findings) {
	const check = "endpoints"
	by := map[endpoint.State][]string{}
	pids := map[int][]string{}
	versions := map[string]bool{}
	var taken, denied error
	var lacking []string
	for _, h := range d.health {
		by[h.State] = append(by[h.State], h.Name.String())
		if h.PID > 0 {
			pids[h.PID] = append(pids[h.PID], h.Name.String())
		}
		if h.State.Answers() {
			versions[h.Version] = true
		}
		switch h.State {
		case endpoint.Silent:
			taken = h.Err
		case endpoint.Denied:
			denied = h.Err
		case endpoint.Missing:
			if h.Name.Version == endpoint.Newest(h.Name.Group) {
				lacking = append(lacking, h.Name.String())
			}
		default:
		}
	}
	all, answering := len(endpoint.All()), len(by[endpoint.Serving])+len(by[endpoint.NoHealth])
	if names := by[endpoint.Silent]; len(names) > 0 {
		f.add(Error, check, "find the process that has them ('csi-proxyctl versions -o wide' shows its id) and stop it; then restart csi-proxy",
			"%s: somebody has them, but does not answer as csi-proxy does: hung, or squatted (%v)", list(names), taken)
	}
	if names := by[endpoint.Denied]; len(names) > 0 {
		f.add(Error, check, "run this as LocalSystem or an administrator, or see the daemon's -pipe-security-descriptor", "%s: %v", list(names), denied)
	}
	if names := by[endpoint.Dead]; len(names) > 0 {
		f.add(Error, check, "start the server again: it replaces them", "%s: sockets that their server has left behind", list(names))
	}
	if names := by[endpoint.NotServing]; len(names) > 0 {
		f.add(Error, "health", "wait: it is stopping; if it does not end, look into its log", "%s: they answer, but say that they are not well", list(names))
	}
	switch missing := by[endpoint.Missing]; {
	case len(missing) == all:
		f.add(Error, check, "start csi-proxy: 'csi-proxyctl service start' on Windows, 'make run' for the emulated node; elsewhere than in the usual place say --endpoint-dir",
			"nothing is there, at %s and all others", d.Node.Path(endpoint.All()[0]))
		return
	case len(lacking) > 0:
		f.add(Warning, "version skew", "upgrade csi-proxy, or widen its -api-groups; until then csi-proxyctl speaks older versions",
			"the server does not have the newest versions that csi-proxyctl speaks: %s", list(lacking))
	case len(missing) > 0:
		f.add(Info, "version skew", "", "older versions are not served: %s", list(missing))
	}
	if len(pids) > 1 {
		var who []string
		for _, pid := range slices.Sorted(maps.Keys(pids)) {
			who = append(who, fmt.Sprintf("process %d has %s", pid, list(pids[pid])))
		}
		f.add(Error, check, "only one csi-proxy can run on a node: stop the processes that do not belong there", "they belong to several processes: %s", strings.Join(who, "; "))
	}
	d.strangers(f, pids)
	if answering == all {
		f.add(OK, check, "", "all %d answer", all)
	} else if answering > 0 {
		f.add(Info, check, "", "%d of %d answer", answering, all)
	}
	d.skew(f, versions)
	if n := len(by[endpoint.NoHealth]); n > 0 {
		f.add(Info, "health", "", "%d endpoints have no health service, as with the original csi-proxy", n)
	} else if n := len(by[endpoint.Serving]); n > 0 && n == answering {
		f.add(OK, "health", "", "all that answer are serving")
	}
}

// strangers finds endpoints that a process has which is not the service.
func (d patient) strangers(f *findings, pids map[int][]string) {
	status := d.daemon.status
	if status.PID == 0 {
		return // the check of the service tells
	}
	for _, pid := range slices.Sorted(maps.Keys(pids)) {
		if pid != int(status.PID) {
			f.add(Error, "endpoints", fmt.Sprintf("tasklist /svc /fi \"pid eq %d\" says who it is; stop it, then csi-proxyctl service start", pid),
				"%s belong to process %d, but the service %s is process %d: another csi-proxy, or squatted", list(pids[pid]), pid, d.ServiceName, status.PID)
		}
	}
}

// skew compares the server's version with ours.
func (d Doctor) skew(f *findings, versions map[string]bool) {
	delete(versions, "") // of the original, which does not tell
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		if version == d.Version {
			f.add(OK, "version skew", "", "server and csi-proxyctl are both %s", version)
		} else {
			f.add(Info, "version skew", "", "the server is %s, csi-proxyctl %s; old and new work together", version, d.Version)
		}
	}
}

// list names a few, and counts the rest.
func list(names []string) string {
	const few = 4
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
