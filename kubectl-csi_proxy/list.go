package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// atOnce is how many nodes are asked at the same time.
	atOnce = 50
	// askTimeout is how long a node may take to answer, and listTimeout how long what the API server knows may.
	askTimeout  = 10 * time.Second
	listTimeout = time.Minute
)

// exitProblems is the exit code of 'csi-proxyctl node --exit-code', too.
const exitProblems = 4

type listOptions struct {
	format             string
	problems, exitCode bool
}

// nodeState is what the list shows of a node. The names are stable.
type nodeState struct {
	Node      string   `json:"node"`
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	Status    string   `json:"status"` // of the pod
	Version   string   `json:"version"`
	Problems  *int     `json:"problems"` // null if the node does not say
	PodsHurt  []string `json:"podsHurt"` // as problems
	Severity  string   `json:"severity"` // of the first problem: csi-proxyctl lists them by severity
	Worst     string   `json:"worst"`    // its text
	Error     string   `json:"error,omitempty"`
}

// rank orders nodes: those that hurt pods, those that do not say, and the others.
func (s *nodeState) rank() int {
	if s.Error != "" {
		return 1
	}
	return map[string]int{"hurts": 0, "will-hurt": 2, "note": 3, "": 4}[s.Severity]
}

// list asks every node at once. It prints a row as soon as a node has answered or had its time, and then those with problems
// once more, the most urgent first.
func (c *cluster) list(ctx context.Context, o listOptions) error {
	if o.format != "" && o.format != "json" {
		return fmt.Errorf("-o %s is unknown; use json", o.format)
	}
	listing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	pods, err := c.pods(listing, "")
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("no pod of CSI Proxy in the namespace %s: it may run as a Windows service, or --namespace and --selector say where it is", c.namespace)
	}
	nodes, err := c.windowsNodes(listing)
	if err != nil {
		return err
	}
	for node := range pods {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	states := c.askAll(ctx, nodes, pods, func(s *nodeState) {
		if o.format == "" && (s == nil || !o.problems || s.rank() < 4) {
			c.row(nodes, s)
		}
	})
	slices.SortStableFunc(states, func(a, b nodeState) int { return cmp.Or(a.rank()-b.rank(), len(b.PodsHurt)-len(a.PodsHurt)) })
	silent, bad := 0, 0
	for _, s := range states {
		if s.Error != "" {
			silent++
		}
		if s.rank() < 3 {
			bad++
		}
	}
	switch healthy := slices.IndexFunc(states, func(s nodeState) bool { return s.rank() == 4 }); {
	case o.format == "json":
		if o.problems && healthy >= 0 {
			states = states[:healthy]
		}
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(states)
	case bad > 1:
		fmt.Fprint(c.out, "\nThe most urgent first:\n")
		for i := range states[:bad] {
			c.row(nodes, &states[i])
		}
	}
	switch {
	case err != nil:
		return err
	case o.exitCode && bad > 0:
		return exitError{exitProblems}
	case silent > 0:
		return fmt.Errorf("%d of %d nodes did not say what problems they have", silent, len(nodes))
	}
	return nil
}

// askAll asks nodes at once, and shows each as soon as it is known.
func (c *cluster) askAll(ctx context.Context, nodes []string, pods map[string][]corev1.Pod, show func(*nodeState)) []nodeState {
	show(nil)
	states := make([]nodeState, len(nodes))
	turns := make(chan struct{}, atOnce)
	var asked sync.WaitGroup
	var printing sync.Mutex
	for i, node := range nodes {
		asked.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			states[i] = c.ask(ctx, node, pods[node])
			printing.Lock()
			defer printing.Unlock()
			show(&states[i])
		})
	}
	asked.Wait()
	return states
}

// row prints the state of one of these nodes, or the header.
func (c *cluster) row(nodes []string, s *nodeState) {
	width := len(slices.MaxFunc(nodes, func(a, b string) int { return len(a) - len(b) }))
	columns := []any{width, "NODE", "VERSION", "PROBLEMS", "PODS HURT", "SEVERITY", "WORST"}
	switch {
	case s == nil:
	case s.Error != "":
		columns = []any{width, s.Node, "-", "?", "?", "?", short(s.Error)}
	default:
		columns = []any{width, s.Node, short(cmp.Or(s.Version, "-")), fmt.Sprint(*s.Problems), fmt.Sprint(len(s.PodsHurt)), short(cmp.Or(s.Severity, "-")), short(s.Worst)}
	}
	fmt.Fprintln(c.out, strings.TrimRight(fmt.Sprintf("%-*s   %-12s   %-8s   %-9s   %-9s   %s", columns...), " "))
}

func (c *cluster) ask(ctx context.Context, node string, pods []corev1.Pod) nodeState {
	s := nodeState{Node: node}
	pod, err := running(node, pods)
	if err != nil {
		s.Error = err.Error()
		if len(pods) > 0 {
			s.Namespace, s.Pod, s.Status = pods[0].Namespace, pods[0].Name, string(pods[0].Status.Phase)
		}
		return s
	}
	s.Namespace, s.Pod, s.Status = pod.Namespace, pod.Name, string(pod.Status.Phase)
	limit := cmp.Or(c.timeout, askTimeout)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs bytes.Buffer
	err = c.run(ctx, pod, streams{out: &limited{&out, longestLine}, err: &limited{&errs, longestLine}}, "node", "-o", "json")
	switch {
	case ctx.Err() != nil:
		s.Error = "no answer within " + limit.String()
	case errors.As(err, new(exitError)):
		s.Error = cmp.Or(printable(strings.TrimSpace(errs.String())), err.Error())
	case err != nil:
		s.Error = printable(err.Error())
	default:
		if err := s.read(out.Bytes()); err != nil {
			s.Error = "its answer is not that of csi-proxyctl: " + printable(err.Error())
		}
	}
	return s
}

// problem is one of 'csi-proxyctl node -o json'.
type problem struct {
	Severity, Text string
	Object         struct{ Type, ID string }
	Others         []struct{} // with the same cause
	Of             string     // is what has all of them
	Pods           []string   // UIDs
}

// String is the text, with the object if its name is short.
func (p problem) String() string {
	if more := len(p.Others); more > 0 {
		return fmt.Sprintf("%d %ss of %s: %s", 1+more, p.Object.Type, p.Of, p.Text)
	}
	switch id := strings.TrimSuffix(strings.TrimPrefix(p.Object.ID, `\\?\Volume{`), `}\`); p.Object.Type {
	case "disk", "volume", "share", "session":
		return p.Object.Type + " " + id + ": " + p.Text
	default:
		return p.Text
	}
}

// read reads what 'csi-proxyctl node -o json' says.
func (s *nodeState) read(text []byte) error {
	var node struct {
		Version  string
		Problems *[]problem
		Pods     []struct{ UID, Namespace, Name string }
	}
	if err := json.Unmarshal(text, &node); err != nil {
		return err
	}
	if node.Problems == nil {
		return errors.New("it has no list of problems")
	}
	names, hurt := map[string]string{}, map[string]bool{}
	for _, pod := range node.Pods {
		if pod.Name != "" { // else it has not started
			names[pod.UID] = pod.Namespace + "/" + pod.Name
		}
	}
	count := len(*node.Problems)
	s.Version, s.Problems, s.PodsHurt = printable(node.Version), &count, []string{}
	for i, p := range *node.Problems {
		if i == 0 {
			s.Severity, s.Worst = printable(p.Severity), printable(p.String())
		}
		for _, uid := range p.Pods {
			if p.Severity == "hurts" && !hurt[uid] {
				hurt[uid] = true
				s.PodsHurt = append(s.PodsHurt, printable(cmp.Or(names[uid], uid)))
			}
		}
	}
	return nil
}
