package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bundle writes the support bundle of a node, and what only the cluster knows: the logs of its pod, also that of the container
// before, and events. A pod that does not run has no more than that.
func (c *cluster) bundle(ctx context.Context, node, name string, args []string) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	empty := true
	defer func() {
		if err = both(err, f.Close()); empty {
			_ = os.Remove(name)
		}
	}()
	archive := zip.NewWriter(f)
	failed := c.copyBundle(ctx, node, archive, args)
	pods, unknown := c.pods(ctx, "spec.nodeName="+node)
	for i := range pods[node] {
		if err := c.addPod(ctx, archive, &pods[node][i]); err != nil {
			return both(failed, err)
		}
	}
	if err := archive.Close(); err != nil {
		return both(failed, err)
	}
	switch empty = failed != nil && len(pods[node]) == 0; {
	case empty:
		return both(failed, unknown)
	case failed != nil:
		return fmt.Errorf("%s has only what the cluster knows: %w", name, failed)
	case unknown != nil:
		return fmt.Errorf("%s has only what the node knows: %w", name, unknown)
	}
	fmt.Fprintln(c.err, "Wrote", name)
	return nil
}

// copyBundle adds the files of 'csi-proxyctl support-bundle'.
func (c *cluster) copyBundle(ctx context.Context, node string, to *zip.Writer, args []string) error {
	whole, err := os.CreateTemp("", "csi-proxy-support")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(whole.Close(), os.Remove(whole.Name())) }()
	s, done := c.plain(node, nil)
	s.out = &limited{whole, 1 << 30}
	if err := both(c.on(ctx, node, s, append([]string{"support-bundle", "--file=-"}, args...)...), done()); err != nil {
		return err
	}
	size, err := whole.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	from, err := zip.NewReader(whole, size)
	if err != nil {
		return fmt.Errorf("node %s: its bundle is not an archive: %w", node, err)
	}
	for _, file := range from.File {
		if !fs.ValidPath(file.Name) || strings.HasPrefix(file.Name, "cluster/") || strings.ContainsAny(file.Name, "\\:\n\t") || printable(file.Name) != file.Name || !file.Mode().IsRegular() {
			return fmt.Errorf("node %s: its bundle has a file %q (%s)", node, file.Name, file.Mode())
		}
		// Nothing else that a program obeys which unpacks it: permissions, and extra fields, which can have another name.
		file.CreatorVersion, file.ExternalAttrs, file.Extra = 0, 0, nil
		if err := to.Copy(file); err != nil {
			return err
		}
	}
	return nil
}

// addPod adds a pod, its logs and its events. What cannot be had is said in its place. Variables are left out: they may have secrets.
func (c *cluster) addPod(ctx context.Context, archive *zip.Writer, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	logs := func(previous bool) func() ([]byte, error) {
		return func() ([]byte, error) {
			return c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.container, Previous: previous, Timestamps: true, LimitBytes: new(int64(16 << 20))}).DoRaw(ctx)
		}
	}
	for _, file := range []struct {
		name string
		read func() ([]byte, error)
	}{
		{"pod.json", func() ([]byte, error) {
			shown := pod.DeepCopy()
			shown.ManagedFields, shown.Annotations = nil, nil
			for _, containers := range [][]corev1.Container{shown.Spec.InitContainers, shown.Spec.Containers} {
				for i := range containers {
					containers[i].Env, containers[i].EnvFrom = nil, nil
				}
			}
			for i := range shown.Spec.EphemeralContainers {
				shown.Spec.EphemeralContainers[i].Env, shown.Spec.EphemeralContainers[i].EnvFrom = nil, nil
			}
			return json.MarshalIndent(shown, "", "  ")
		}},
		{"log.txt", logs(false)},
		{"log-previous.txt", logs(true)},
		{"events.json", func() ([]byte, error) {
			events, err := c.client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod.Name})
			if err != nil {
				return nil, err
			}
			return json.MarshalIndent(events.Items, "", "  ")
		}},
	} {
		text, err := file.read()
		if err != nil {
			text = []byte(err.Error() + "\n")
		}
		w, err := archive.Create("cluster/" + pod.Name + "/" + file.name)
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
