package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// cluster has nodes on which CSI Proxy runs.
type cluster struct {
	config *rest.Config
	client kubernetes.Interface

	namespace, selector, container, program string

	in       io.Reader
	out, err io.Writer
}

// exitError is how csi-proxyctl ended on a node.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("csi-proxyctl ended with exit code %d", e.code) }

// pods returns the pods of CSI Proxy, by node.
func (c *cluster) pods(ctx context.Context, fieldSelector string) ([]corev1.Pod, error) {
	found, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: c.selector, FieldSelector: fieldSelector})
	if err != nil {
		return nil, fmt.Errorf("list the pods of CSI Proxy: %w", err)
	}
	slices.SortFunc(found.Items, func(a, b corev1.Pod) int {
		return strings.Compare(a.Spec.NodeName+"/"+a.Name, b.Spec.NodeName+"/"+b.Name)
	})
	return found.Items, nil
}

func (c *cluster) runOn(ctx context.Context, node string, out io.Writer, args ...string) error {
	pods, err := c.pods(ctx, "spec.nodeName="+node)
	if err != nil {
		return err
	}
	running := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil })
	if running < 0 {
		return fmt.Errorf("no pod of CSI Proxy runs on node %s: 'kubectl csi-proxy' lists the nodes where one does; --namespace and --selector say where to look", node)
	}
	return c.run(ctx, &pods[running], c.in, out, c.err, args...)
}

func (c *cluster) run(ctx context.Context, pod *corev1.Pod, in io.Reader, out, errs io.Writer, args ...string) error {
	request := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: c.container, Command: append([]string{c.program}, args...), Stdin: in != nil, Stdout: true, Stderr: true,
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
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errs})
	if ended := (exec.CodeExitError{}); errors.As(err, &ended) {
		return exitError{ended.Code}
	}
	if err != nil {
		return fmt.Errorf("run csi-proxyctl in pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
