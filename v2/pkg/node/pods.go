package node

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Pod is a pod that the node has, or had a while ago.
type Pod struct{ UID, Namespace, Name string }

// Where the kubelet keeps the logs of pods: podLogs\NAMESPACE_NAME_UID. None of the three can contain an underscore.
// https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/kubelet/kuberuntime/helpers.go
const (
	logDir  = `C:\var\log`
	podLogs = "pods"
	maxPods = 1000 // a node has 250 at most, and keeps directories for a while
)

// allPods reads the names of pods. Paths have only their UIDs.
func (l *lookup) allPods(ctx context.Context) (pods []Pod) {
	above, err := l.m.OpenDirectory(ctx, win.Following(logDir))
	if err != nil { // the kubelet may keep them elsewhere: then there are no names
		return nil
	}
	defer above.Close()
	_ = win.List(ctx, above, podLogs, func(_ win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			if parts := strings.Split(entry.Name, "_"); len(parts) == 3 && len(pods) < maxPods {
				pods = append(pods, Pod{UID: parts[2], Namespace: parts[0], Name: parts[1]})
			}
		}
		return ctx.Err()
	})
	return pods
}
