package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// defaultNamespace is where the documentation installs CSI Proxy.
const defaultNamespace = "kube-system"

// cluster has nodes on which CSI Proxy runs.
type cluster struct {
	config *rest.Config
	client kubernetes.Interface

	namespace, selector, container, program string

	timeout  time.Duration // 0: that of the command
	flags    string        // those that the plugin was called with
	in       io.Reader
	out, err io.Writer
}

// exitError is how csi-proxyctl ended on a node.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("csi-proxyctl ended with exit code %d", e.code) }

// streams are those of a program on a node.
type streams struct {
	in       io.Reader
	out, err io.Writer
	sizes    remotecommand.TerminalSizeQueue // of a terminal, if the program gets one
}

// pods returns the pods of CSI Proxy by the names of their nodes. Others may have the same labels. What the plugin sends, such as a
// password, it sends only to one that a DaemonSet of this namespace has made and that runs as a process of the host: who can
// make such a pod here can do everything on the node anyway.
func (c *cluster) pods(ctx context.Context, fieldSelector string) (map[string][]corev1.Pod, error) {
	found, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: c.selector, FieldSelector: fieldSelector})
	if err != nil {
		return nil, fmt.Errorf("list the pods of CSI Proxy in the namespace %s: %w", c.namespace, err)
	}
	pods := map[string][]corev1.Pod{}
	for _, pod := range found.Items {
		owner := metav1.GetControllerOf(&pod)
		if owner != nil && owner.Kind == "DaemonSet" && c.isHostProcess(&pod.Spec) && pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" {
			pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], pod)
		}
	}
	return pods, nil
}

func (c *cluster) isHostProcess(spec *corev1.PodSpec) bool {
	var hostProcess *bool
	if s := spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		hostProcess = s.WindowsOptions.HostProcess
	}
	i := slices.IndexFunc(spec.Containers, func(container corev1.Container) bool { return container.Name == c.container })
	if i < 0 {
		return false
	}
	if s := spec.Containers[i].SecurityContext; s != nil && s.WindowsOptions != nil && s.WindowsOptions.HostProcess != nil {
		hostProcess = s.WindowsOptions.HostProcess
	}
	return hostProcess != nil && *hostProcess
}

// windowsNodes returns the names of the nodes with Windows, or none if this user must not list nodes.
func (c *cluster) windowsNodes(ctx context.Context) ([]string, error) {
	found, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=windows"})
	if apierrors.IsForbidden(err) {
		fmt.Fprintln(c.err, "Nodes without a pod of CSI Proxy are not shown: you must not list nodes.")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the Windows nodes: %w", err)
	}
	var names []string
	for _, node := range found.Items {
		names = append(names, node.Name)
	}
	return names, nil
}

// running returns the pod that runs on a node, out of those that are there.
func running(node string, pods []corev1.Pod) (*corev1.Pod, error) {
	up := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
	switch {
	case len(up) == 1:
		return &up[0], nil
	case len(up) > 1:
		return nil, fmt.Errorf("%d pods on node %s look like CSI Proxy, such as %s and %s: name one with --selector", len(up), node, up[0].Name, up[1].Name)
	case len(pods) > 0:
		return nil, fmt.Errorf("its pod %s is %s", pods[0].Name, pods[0].Status.Phase)
	default:
		return nil, errors.New("no pod of CSI Proxy")
	}
}

// on runs a command of csi-proxyctl on a node. Without a terminal it has a limit of time; with one, only until it begins to answer.
func (c *cluster) on(ctx context.Context, node string, s streams, args ...string) error {
	limit := c.timeout
	if limit == 0 {
		limit = runTimeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := fmt.Errorf("no answer from node %s within %s; a --timeout before its name is another limit", node, limit)
	end := time.AfterFunc(limit, func() { cancel(late) })
	defer end.Stop()
	if s.sizes != nil {
		s.out = &firstByte{s.out, func() { end.Stop() }}
	}
	pods, err := c.pods(ctx, "spec.nodeName="+node)
	if err == nil {
		var pod *corev1.Pod
		if pod, err = running(node, pods[node]); err == nil {
			err = c.run(ctx, pod, s, args...)
		} else {
			err = fmt.Errorf("node %s: %w; only a pod of a DaemonSet in the namespace %s counts, with hostProcess, the labels %s and a container %s: "+
				"'kubectl csi-proxy' lists the nodes, and --namespace, --selector and --container look elsewhere", node, err, c.namespace, c.selector, c.container)
		}
	}
	if errors.Is(context.Cause(ctx), late) {
		return late
	}
	return err
}

// firstByte calls written for each text.
type firstByte struct {
	io.Writer
	written func()
}

func (f *firstByte) Write(text []byte) (int, error) {
	f.written()
	return f.Writer.Write(text)
}

func (c *cluster) run(ctx context.Context, pod *corev1.Pod, s streams, args ...string) error {
	terminal := s.sizes != nil // which has no second output
	request := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: c.container, Command: append([]string{c.program}, args...), Stdin: s.in != nil, Stdout: true, Stderr: !terminal, TTY: terminal,
		}, scheme.ParameterCodec)
	// As kubectl: WebSocket, or SPDY if the server or a proxy on the way is too old.
	socket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", request.URL())
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	options := remotecommand.StreamOptions{Stdin: s.in, Stdout: s.out, Stderr: s.err, Tty: terminal, TerminalSizeQueue: s.sizes}
	if terminal {
		options.Stderr = nil
	}
	err = executor.StreamWithContext(ctx, options)
	if ended := (exec.CodeExitError{}); errors.As(err, &ended) {
		return exitError{ended.Code}
	}
	if err != nil {
		return fmt.Errorf("run csi-proxyctl in pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// prefix is how commands of csi-proxyctl begin where this plugin is called.
func (c *cluster) prefix(node string) string {
	return "kubectl csi-proxy " + c.flags + "ctl " + node + " "
}
