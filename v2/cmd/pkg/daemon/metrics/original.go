package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"
)

// original serves requests under the names that the original's dashboards read, which are those of
// go-grpc-prometheus. A scrape reads the counters of our own names again, so a request costs
// nothing more. Only started is a counter of its own: the sum of two counters that are read one
// after the other would at times decrease.
//
// https://github.com/grpc-ecosystem/go-grpc-prometheus/blob/master/server_metrics.go
type original struct{ of *Metrics }

var (
	ofOriginalMethod = []string{"grpc_type", "grpc_service", "grpc_method"}
	startedDesc      = prometheus.NewDesc("grpc_server_started_total",
		"Requests that have started. The original's name.", ofOriginalMethod, nil)
	handledDesc = prometheus.NewDesc("grpc_server_handled_total",
		"The original's name of csi_proxy_requests_total.", slices.Concat(ofOriginalMethod, []string{"grpc_code"}), nil)
	handlingDesc = prometheus.NewDesc("grpc_server_handling_seconds",
		"The original's name of csi_proxy_request_duration_seconds, with its buckets.", ofOriginalMethod, nil)
)

func (original) Describe(descs chan<- *prometheus.Desc) {
	descs <- startedDesc
	descs <- handledDesc
	descs <- handlingDesc
}

func (o original) Collect(metrics chan<- prometheus.Metric) {
	for _, value := range o.of.methods.Range {
		series := value.(*method)
		labels := []string{"unary", series.service, series.name} // the API has no streams
		metrics <- prometheus.MustNewConstMetric(startedDesc, prometheus.CounterValue, float64(series.started.Load()), labels...)
		for code := range series.byCode {
			counter := series.byCode[code].Load()
			if counter == nil {
				continue
			}
			var now dto.Metric
			if err := (*counter).Write(&now); err != nil {
				metrics <- prometheus.NewInvalidMetric(handledDesc, err)
				continue
			}
			metrics <- prometheus.MustNewConstMetric(handledDesc, prometheus.CounterValue,
				now.GetCounter().GetValue(), append(labels, codes.Code(code).String())...)
		}
		metrics <- series.handling(labels)
	}
}

// handling returns the histogram of a method with the buckets of the original, which are among ours.
func (s *method) handling(labels []string) prometheus.Metric {
	var now dto.Metric
	if err := s.duration.Write(&now); err != nil {
		return prometheus.NewInvalidMetric(handlingDesc, err)
	}
	ours := now.GetHistogram()
	counts := make(map[float64]uint64, len(prometheus.DefBuckets))
	for _, bucket := range ours.GetBucket() {
		if slices.Contains(prometheus.DefBuckets, bucket.GetUpperBound()) {
			counts[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
		}
	}
	return prometheus.MustNewConstHistogram(handlingDesc, ours.GetSampleCount(), ours.GetSampleSum(), counts, labels...)
}
