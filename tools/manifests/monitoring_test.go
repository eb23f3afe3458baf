package manifests

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	corev1 "k8s.io/api/core/v1"
)

// series are the time series there are, each with its labels: our own metrics, which
// v2/cmd/pkg/daemon/metrics keeps a list of, and the few of Prometheus and its client library that we use.
func series(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{
		"up": nil, "process_start_time_seconds": nil, "process_resident_memory_bytes": nil, "process_cpu_seconds_total": nil,
		// Of kube-state-metrics: https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/workload/daemonset-metrics.md
		"kube_daemonset_status_number_unavailable": {"daemonset"},
	}
	for line := range strings.Lines(string(read(t, "v2/cmd/pkg/daemon/metrics/testdata/names.txt"))) {
		fields := strings.Fields(line)
		names := strings.FieldsFunc(fields[2], func(r rune) bool { return strings.ContainsRune("{,}", r) })
		if fields[1] != "histogram" {
			all[fields[0]] = names
			continue
		}
		all[fields[0]+"_bucket"] = append(names, "le")
		all[fields[0]+"_sum"], all[fields[0]+"_count"] = names, names
	}
	return all
}

// targetLabels are on every series: the first comes from our ServiceMonitor, the others from the
// Prometheus operator.
var targetLabels = []string{"node", "job", "instance", "namespace", "pod", "container", "service", "endpoint"}

// checkExpression parses an expression, and complains about series and labels that do not exist.
func checkExpression(t *testing.T, where, text string) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %s: %v", where, text, err)
		return
	}
	known := series(t)
	used := 0
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			used++
			own, exists := known[node.Name]
			if !exists {
				t.Errorf("%s: there is no metric %s", where, node.Name)
			}
			for _, matcher := range node.LabelMatchers {
				if matcher.Name != model.MetricNameLabel && !slices.Contains(own, matcher.Name) && !slices.Contains(targetLabels, matcher.Name) {
					t.Errorf("%s: %s has no label %s", where, node.Name, matcher.Name)
				}
			}
		case *parser.AggregateExpr:
			for _, label := range node.Grouping {
				parser.Inspect(node.Expr, func(inner parser.Node, _ []parser.Node) error {
					selector, ok := inner.(*parser.VectorSelector)
					if ok && !slices.Contains(known[selector.Name], label) && !slices.Contains(targetLabels, label) {
						t.Errorf("%s: %s has no label %s to group by", where, selector.Name, label)
					}
					return nil
				})
			}
		}
		return nil
	})
	if used == 0 {
		t.Errorf("%s: %s: it is about no metric", where, text)
	}
}

// templateLabel is a label in the text of an alert.
var templateLabel = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAlerts(t *testing.T) {
	for file, rule := range of[monitoringv1.PrometheusRule](t) {
		alerts := map[string]bool{}
		for _, group := range rule.Spec.Groups {
			for _, alert := range group.Rules {
				checkExpression(t, file+": "+alert.Alert, alert.Expr.String())
				if alert.Alert == "" || alerts[alert.Alert] || alert.Labels["severity"] == "" || alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
					t.Errorf("%s: %+v: an alert has a name of its own, a severity, a summary and a description", file, alert)
				}
				alerts[alert.Alert] = true
				if runbook := alert.Annotations["runbook_url"]; (runbook == "https://docs.example/csi-proxy/operations?view=a&b#c") != (file == Sets[len(Sets)-1].Manifest) {
					t.Errorf("%s: %s: its runbook is %q", file, alert.Alert, runbook)
				}
				for _, match := range templateLabel.FindAllStringSubmatch(alert.Annotations["summary"], -1) {
					// What an aggregation has left is what it groups by.
					if text := alert.Expr.String(); strings.Contains(text, "by (") && !regexp.MustCompile(`by \([^)]*\b`+match[1]+`\b`).MatchString(text) {
						t.Errorf("%s: %s: its expression has no label %s", file, alert.Alert, match[1])
					}
				}
			}
		}
		if len(alerts) == 0 {
			t.Errorf("%s has no alert", file)
		}
	}
}

// TestServiceMonitor: it selects the Service, by labels and by the name of the port, and sets the
// labels that alerts and dashboard rely on.
func TestServiceMonitor(t *testing.T) {
	for file, monitor := range of[monitoringv1.ServiceMonitor](t) {
		service := of[corev1.Service](t)[file]
		if service == nil {
			t.Fatalf("%s has no Service", file)
		}
		for key, value := range monitor.Spec.Selector.MatchLabels {
			if service.Labels[key] != value {
				t.Errorf("%s: the Service has no label %s=%s", file, key, value)
			}
		}
		if job := service.Labels[monitor.Spec.JobLabel]; job != "csi-proxy" {
			t.Errorf("%s: the label job is %q", file, job)
		}
		endpoint := monitor.Spec.Endpoints[0]
		if endpoint.Port != service.Spec.Ports[0].Name {
			t.Errorf("%s: port %s is not that of the Service", file, endpoint.Port)
		}
		if len(endpoint.RelabelConfigs) != 1 || endpoint.RelabelConfigs[0].TargetLabel != "node" {
			t.Errorf("%s: it does not set the label node: %+v", file, endpoint.RelabelConfigs)
		}
	}
}

// Dashboard is what we use of Grafana's dashboards. Their project has no Go package with strict
// types that can be had as a module, so these are ours: a field that is not here is an error, and
// so is a panel that Grafana would show empty.
type dashboard struct {
	UID, Title, Description, Refresh, Timezone string
	Tags                                       []string
	SchemaVersion, Version, GraphTooltip       int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Annotations                                struct{ List []json.RawMessage }
	Templating                                 struct{ List []variable }
	Panels                                     []panel
}

type variable struct {
	Name, Type, Label, Query, AllValue string
	Datasource                         datasource
	IncludeAll, Multi                  bool
	Refresh, Sort                      int
}

type datasource struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Thresholds *struct {
				Mode  string
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
		Overrides []json.RawMessage
	}
	Options struct {
		ColorMode     string
		ReduceOptions struct {
			Calcs  []string
			Fields string
			Values bool
		}
		Legend struct {
			DisplayMode, Placement string
			ShowLegend             bool
		}
		Tooltip struct{ Mode, Sort string }
	}
	Targets []struct {
		RefID, Expr, LegendFormat string
		Datasource                datasource
	}
}

func TestDashboard(t *testing.T) {
	text := read(t, ChartDir+"/files/dashboard.json")
	for file, config := range of[corev1.ConfigMap](t) {
		if rendered, found := config.Data["csi-proxy.json"]; found && strings.TrimSpace(rendered) != strings.TrimSpace(string(text)) {
			t.Errorf("%s: the dashboard is not the one of the chart", file)
		}
	}
	var board dashboard
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&board))
	if board.UID == "" || board.Title == "" || board.SchemaVersion < 36 || len(board.Panels) == 0 {
		t.Errorf("%+v lacks an id, a title, panels or a current schema", board)
	}
	variables := map[string]string{"__rate_interval": "5m"}
	for _, v := range board.Templating.List {
		variables[v.Name] = ".*"
		if v.Type == "query" {
			metric, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Query, "label_values("), ")"), ", ")
			checkExpression(t, "variable "+v.Name, "count by ("+label+") ("+metric+")")
		}
	}
	reference := regexp.MustCompile(`\$\{?(\w+)\}?`)
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	ids, taken, charted := map[int]bool{}, map[[2]int]string{}, map[string]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.Type != "stat" && p.Type != "timeseries" {
			t.Errorf("panel %d %q: it lacks an id of its own, a title, a query or a type that Grafana knows", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, used := taken[[2]int{x, y}]; used || x >= 24 {
					t.Fatalf("panel %q lies on %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			expression := reference.ReplaceAllStringFunc(target.Expr, func(found string) string {
				value, known := variables[strings.Trim(found, "${}")]
				if !known {
					t.Errorf("panel %q: there is no variable %s", p.Title, found)
				}
				return value
			})
			checkExpression(t, "panel "+p.Title, expression)
			for _, match := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if strings.Contains(expression, "by (") && !regexp.MustCompile(`by \([^)]*\b`+match[1]+`\b`).MatchString(expression) {
					t.Errorf("panel %q: %s has no label %s", p.Title, expression, match[1])
				}
			}
			for name := range series(t) {
				if strings.Contains(expression, name) {
					charted[strings.TrimSuffix(name, "_bucket")] = true
				}
			}
			if p.Datasource.UID != "${datasource}" || target.Datasource != p.Datasource {
				t.Errorf("panel %q does not ask the data source that was chosen", p.Title)
			}
		}
	}
	for line := range strings.Lines(string(read(t, "v2/cmd/pkg/daemon/metrics/testdata/names.txt"))) {
		if name := strings.Fields(line)[0]; !charted[name] {
			t.Errorf("no panel shows %s; those shown are %q", name, slices.Sorted(maps.Keys(charted)))
		}
	}
}
