package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
)

// atOnce is how many nodes are asked at the same time.
const atOnce = 20

type listOptions struct {
	format   string
	timeout  time.Duration
	problems bool
}

// nodeState is what the list shows of a node. The names are stable.
type nodeState struct {
	Node      string   `json:"node"`
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	Status    string   `json:"status"` // of the pod, unless it runs
	Version   string   `json:"version"`
	Problems  int      `json:"problems"`
	PodsHurt  []string `json:"podsHurt"`
	Severity  string   `json:"severity"` // of the first problem: csi-proxyctl lists them by severity
	Worst     string   `json:"worst"`    // its text
	Error     string   `json:"error,omitempty"`
}

// list asks every node at once, and prints them when all have answered or had their time.
func (c *cluster) list(ctx context.Context, o listOptions) error {
	if o.format != "" && o.format != "json" {
		return fmt.Errorf("-o %s is unknown; use json", o.format)
	}
	pods, err := c.pods(ctx, "")
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return errors.New("no pod of CSI Proxy: it may run as a Windows service, or --namespace and --selector say where it is")
	}
	states := make([]nodeState, len(pods))
	turns := make(chan struct{}, atOnce)
	var asked sync.WaitGroup
	for i := range pods {
		asked.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			states[i] = c.ask(ctx, &pods[i], o.timeout)
		})
	}
	asked.Wait()
	if o.problems {
		bad := states[:0]
		for _, s := range states {
			if s.Problems > 0 || s.Error != "" {
				bad = append(bad, s)
			}
		}
		states = bad
	}
	show := c.table
	if o.format == "json" {
		show = func(states []nodeState) error {
			encoder := json.NewEncoder(c.out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(states)
		}
	}
	if err := show(states); err != nil {
		return err
	}
	silent := 0
	for _, s := range states {
		if s.Error != "" {
			silent++
		}
	}
	if silent > 0 {
		return fmt.Errorf("%d of %d nodes did not say what problems they have", silent, len(pods))
	}
	return nil
}

func (c *cluster) table(states []nodeState) error {
	table := tabwriter.NewWriter(c.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NODE\tVERSION\tPROBLEMS\tPODS HURT\tSEVERITY\tWORST")
	for _, s := range states {
		if s.Error != "" {
			fmt.Fprintf(table, "%s\t-\t?\t?\t?\t%s\n", s.Node, short(s.Error))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", s.Node, cmp.Or(s.Version, "-"), s.Problems, len(s.PodsHurt), cmp.Or(s.Severity, "-"), short(s.Worst))
	}
	return table.Flush()
}

func (c *cluster) ask(ctx context.Context, pod *corev1.Pod, timeout time.Duration) nodeState {
	s := nodeState{Node: pod.Spec.NodeName, Namespace: pod.Namespace, Pod: pod.Name, Status: string(pod.Status.Phase), PodsHurt: []string{}}
	if pod.Status.Phase != corev1.PodRunning {
		s.Error = "its pod " + pod.Name + " is " + string(pod.Status.Phase)
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out, errs bytes.Buffer
	err := c.run(ctx, pod, nil, &out, &errs, "node", "-o", "json")
	switch {
	case ctx.Err() != nil:
		s.Error = "no answer within " + timeout.String()
	case errors.As(err, new(exitError)):
		s.Error = strings.TrimSpace(errs.String())
	case err != nil:
		s.Error = err.Error()
	default:
		if err := s.read(out.Bytes()); err != nil {
			s.Error = "its answer is not that of csi-proxyctl: " + err.Error()
		}
	}
	return s
}

// problem is one of 'csi-proxyctl node -o json'.
type problem struct {
	Severity, Text string
	Object         struct{ Type, ID string }
	Pods           []string // UIDs
}

// String is the text, with the object if its name is short.
func (p problem) String() string {
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
		names[pod.UID] = pod.Namespace + "/" + pod.Name
	}
	s.Version, s.Problems = node.Version, len(*node.Problems)
	for i, p := range *node.Problems {
		if i == 0 {
			s.Severity, s.Worst = p.Severity, p.String()
		}
		for _, uid := range p.Pods {
			if p.Severity == "hurts" && !hurt[uid] {
				hurt[uid] = true
				s.PodsHurt = append(s.PodsHurt, cmp.Or(names[uid], uid))
			}
		}
	}
	return nil
}

// short is one line that fits into a table. Names of a node can have any characters.
func short(text string) string {
	const longest = 70
	line := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.Join(strings.Fields(text), " ")))
	if len(line) > longest {
		line = append(line[:longest-1], '…')
	}
	return string(line)
}
