package manifests

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"sigs.k8s.io/yaml"
)

// alertTests is a file of unit tests as promtool reads it. promtool itself would bring a thousand
// packages of cloud providers, so the tests run here on Prometheus' engine, parsers and templates.
// https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/
type alertTests struct {
	RuleFiles          []string       `json:"rule_files"`
	EvaluationInterval model.Duration `json:"evaluation_interval"`
	Tests              []struct {
		Name        string         `json:"name"`
		Interval    model.Duration `json:"interval"`
		InputSeries []struct {
			Series string `json:"series"`
			Values string `json:"values"`
		} `json:"input_series"`
		AlertRuleTest []struct {
			EvalTime  model.Duration `json:"eval_time"`
			AlertName string         `json:"alertname"`
			Expected  []alert        `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// alert is an alert that fires.
type alert struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

// memory holds series.
type memory []storage.Series

// Querier implements storage.Queryable.
func (m memory) Querier(int64, int64) (storage.Querier, error) { return querier{m}, nil }

type querier struct{ memory }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, series := range q.memory {
		matches := func(m *labels.Matcher) bool { return !m.Matches(series.Labels().Get(m.Name)) }
		if !slices.ContainsFunc(matchers, matches) {
			found = append(found, series)
		}
	}
	return &seriesSet{found: found}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type seriesSet struct {
	found []storage.Series
	next  int
}

func (s *seriesSet) Next() bool                      { s.next++; return s.next <= len(s.found) }
func (s *seriesSet) At() storage.Series              { return s.found[s.next-1] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (s sample) F() float64                  { return s.value }
func (sample) ST() int64                     { return 0 }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }

// load parses a series and its values.
func load(t *testing.T, series, values string, interval time.Duration) storage.Series {
	t.Helper()
	metric, sequence, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(series + " " + values)
	must(t, err)
	var samples []chunks.Sample
	for i, value := range sequence {
		if !value.Omitted {
			samples = append(samples, sample{int64(i) * interval.Milliseconds(), value.Value})
		}
	}
	return storage.NewListSeries(metric, samples)
}

// firing evaluates a rule from the beginning, and returns the alerts that fire at a time.
func firing(t *testing.T, data memory, rule rulefmt.Rule, interval, at time.Duration) []alert {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	defer engine.Close()
	since := map[string]time.Duration{}
	var alerts []alert
	for now := time.Duration(0); now <= at; now += interval {
		alerts = nil
		moment := timestamp.Time(now.Milliseconds())
		query, err := engine.NewInstantQuery(t.Context(), data, nil, rule.Expr, moment)
		must(t, err)
		vector, err := query.Exec(t.Context()).Vector()
		must(t, err)
		active := map[string]time.Duration{}
		for _, s := range vector {
			if math.IsNaN(s.F) {
				t.Fatalf("%s: the value is not a number", rule.Alert)
			}
			key := s.Metric.String()
			active[key] = now
			if before, was := since[key]; was {
				active[key] = before
			}
			if now-active[key] >= time.Duration(rule.For) {
				alerts = append(alerts, expand(t, rule, s))
			}
		}
		since = active
		query.Close()
	}
	return alerts
}

// expand fills the templates of an alert.
func expand(t *testing.T, rule rulefmt.Rule, s promql.Sample) alert {
	t.Helper()
	own := s.Metric.DropReserved(func(name string) bool { return name == model.MetricNameLabel }).Map()
	data := template.AlertTemplateData(own, nil, "", s)
	texts := map[string]string{}
	for name, text := range rule.Annotations {
		const definitions = "{{$labels := .Labels}}{{$value := .Value}}"
		expanded, err := template.NewTemplateExpander(t.Context(), definitions+text, rule.Alert, data, 0, nil, &url.URL{}, nil).Expand()
		if err != nil {
			t.Errorf("%s: %s: %v", rule.Alert, name, err)
		}
		texts[name] = expanded
	}
	maps.Copy(own, rule.Labels)
	return alert{own, texts}
}

// TestAlerts_Fire: every alert fires when it should, with the right words, and not a minute earlier.
func TestAlerts_Fire(t *testing.T) {
	const file = "tools/manifests/testdata/alerts.test.yaml"
	var tests alertTests
	must(t, yaml.UnmarshalStrict(read(t, file), &tests))
	rules := map[string]rulefmt.Rule{}
	for _, name := range tests.RuleFiles {
		groups, errs := rulefmt.Parse(read(t, path.Join(path.Dir(file), name)), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
		for _, err := range errs {
			t.Error(err)
		}
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				rules[rule.Alert] = rule
			}
		}
	}
	fired, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		var data memory
		for _, input := range test.InputSeries {
			data = append(data, load(t, input.Series, input.Values, time.Duration(test.Interval)))
		}
		for _, moment := range test.AlertRuleTest {
			rule, known := rules[moment.AlertName]
			if !known {
				t.Fatalf("%s: there is no alert %s", test.Name, moment.AlertName)
			}
			got := firing(t, data, rule, time.Duration(tests.EvaluationInterval), time.Duration(moment.EvalTime))
			if diff := cmp.Diff(moment.Expected, got); diff != "" {
				t.Errorf("%s: %s at %s (-want +got):\n%s", test.Name, moment.AlertName, moment.EvalTime, diff)
			}
			fired[rule.Alert] = fired[rule.Alert] || len(moment.Expected) > 0
			silent[rule.Alert] = silent[rule.Alert] || len(moment.Expected) == 0
		}
	}
	for name := range rules {
		if !fired[name] || !silent[name] {
			t.Errorf("%s: no test in which %s fires, or none in which it does not", file, name)
		}
	}
}
