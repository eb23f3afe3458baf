package node

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Pod is a pod that the node has, or had a while ago. One whose containers have not been started yet has no name.
type Pod struct{ UID, Namespace, Name string }

// Where the kubelet keeps the logs of pods: podLogs\NAMESPACE_NAME_UID. None of the three can contain an underscore.
// https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/kubelet/kuberuntime/helpers.go
const (
	logDir  = `C:\var\log`
	podLogs = "pods"
	podDirs = "pods" // in the kubelet's directory, with the UIDs of pods
	maxPods = 1000   // a node has 250 at most, and keeps directories for a while
)

// allPods reads the names of pods. Paths have only their UIDs.
func (l *lookup) allPods(ctx context.Context) (pods []Pod) {
	known := map[string]bool{}
	add := func(p Pod) {
		if !known[p.UID] && len(pods) < maxPods {
			known[p.UID] = true
			pods = append(pods, p)
		}
	}
	l.eachIn(ctx, logDir, podLogs, func(name string) { // the kubelet may keep them elsewhere: then there are no names
		if parts := strings.Split(name, "_"); len(parts) == 3 {
			add(Pod{UID: parts[2], Namespace: parts[0], Name: parts[1]})
		}
	})
	for _, dir := range l.limits.WorkingDirs() {
		l.eachIn(ctx, dir, podDirs, func(uid string) { add(Pod{UID: uid}) })
	}
	return pods
}

// eachIn calls do with the names in a directory, if it can be listed.
func (l *lookup) eachIn(ctx context.Context, above, name string, do func(name string)) {
	dir, err := l.m.OpenDirectory(ctx, win.Following(above))
	if err != nil {
		return
	}
	defer dir.Close()
	_ = win.List(ctx, dir, name, func(_ win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			do(entry.Name)
		}
		return ctx.Err()
	})
}
