package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// storage has the metrics of the node's storage. A scrape reads the last description and asks for a
// newer one, but does not wait for it: a description of a node with a disk that hangs takes many seconds.
type storage struct {
	wanted chan struct{} // holds one value at most
	now    func() time.Time

	mu     sync.Mutex
	at     time.Time // of the last description; the start before the first, so that its age grows if all fail
	counts []storageCount
}

// storageCount is a value of a metric, at the time of the description.
type storageCount struct {
	desc   *prometheus.Desc
	value  int
	labels []string
	since  time.Time // of an age; then value is 0
}

func storageDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "storage", name), help, labels, nil)
}

var (
	storageProblems = storageDesc("problems", "Problems of the node's storage, by kind and severity; 'csi-proxyctl node' shows them.", "kind", "severity")
	storageOldest   = storageDesc("problem_age_seconds", "How long the daemon has seen the oldest problem of a severity; 0 if there is none.", "severity")
	storagePodsHurt = storageDesc("pods_hurt", "Pods that problems of the storage hurt now.")
	storageDisks    = storageDesc("disks", "Disks, by state: online, offline, read-only, or unknown if it cannot be read.", "state")
	storageVolumes  = storageDesc("volumes", "Volumes, by percent of their space that is used.", "fill")
	storageMappings = storageDesc("mappings", "SMB mappings, by the status that Windows reports, which does not change when a server fails silently.", "status")
	storageStale    = storageDesc("stale_links", "Mounted folders and links in the working directories that lead nowhere.")
	storageAge      = storageDesc("description_age_seconds", "Time since the other storage metrics were read, or since the start if they never were.")

	storageDescs = []*prometheus.Desc{storageProblems, storageOldest, storagePodsHurt, storageDisks, storageVolumes, storageMappings, storageStale, storageAge}
)

// The values of labels. All of them are in every scrape, also those with no object: an alert on a
// series that is missing never resolves.
const (
	diskOnline   = "online"
	diskOffline  = "offline"
	diskReadOnly = "read-only"
	other        = "other"
	unknown      = "unknown"
)

var (
	diskStates = []string{diskOnline, diskOffline, diskReadOnly, unknown}
	// mappingStates are those of a description.
	mappingStates = []string{"ok", "paused", "disconnected", "network error", "connecting", "reconnecting", "unavailable", other}
	// fills are classes with their upper limits in percent. A volume above 90 is one of the problems.
	fills = []struct {
		name string
		most float64
	}{{"0-50", 50}, {"50-75", 75}, {"75-90", 90}, {"90-95", 95}, {"95-100", 100}}
)

// StorageWanted implements daemon.StorageObserver.
func (m *Metrics) StorageWanted() <-chan struct{} { return m.storage.wanted }

// Storage implements daemon.StorageObserver.
func (m *Metrics) Storage(node *extensionv1.Node) {
	counts := count(node)
	m.storage.mu.Lock()
	defer m.storage.mu.Unlock()
	m.storage.at, m.storage.counts = m.storage.now(), counts
}

func (*storage) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range storageDescs {
		descs <- desc
	}
}

func (s *storage) Collect(metrics chan<- prometheus.Metric) {
	select {
	case s.wanted <- struct{}{}:
	default: // it is wanted already
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	metrics <- prometheus.MustNewConstMetric(storageAge, prometheus.GaugeValue, s.now().Sub(s.at).Seconds())
	for _, c := range s.counts {
		value := float64(c.value)
		if !c.since.IsZero() {
			value = max(0, s.now().Sub(c.since).Seconds())
		}
		metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, value, c.labels...)
	}
}

func count(node *extensionv1.Node) (all []storageCount) {
	add := func(desc *prometheus.Desc, names []string, objects map[string]int) {
		for _, name := range names {
			all = append(all, storageCount{desc: desc, value: objects[name], labels: []string{name}})
		}
	}
	found := problem.Find(node)
	for _, severity := range problem.Severities() {
		age := storageCount{desc: storageOldest, labels: []string{string(severity)}}
		count := map[problem.Kind]int{}
		for _, p := range found {
			if p.Severity != severity {
				continue
			}
			count[p.Kind]++
			if p.Since != nil && (age.since.IsZero() || p.Since.Before(age.since)) {
				age.since = *p.Since
			}
		}
		for _, kind := range problem.Kinds() {
			all = append(all, storageCount{desc: storageProblems, value: count[kind], labels: []string{string(kind), string(severity)}})
		}
		all = append(all, age)
	}
	all = append(all, storageCount{desc: storagePodsHurt, value: problem.PodsHurt(found)})

	disks := map[string]int{}
	for _, d := range node.GetDisks() {
		disks[diskState(d)]++
	}
	add(storageDisks, diskStates, disks)

	classes, volumes := []string{}, map[string]int{}
	for _, class := range fills {
		classes = append(classes, class.name)
	}
	for _, v := range node.GetVolumes() {
		volumes[fillOf(v)]++
	}
	add(storageVolumes, append(classes, unknown), volumes)

	// What was not looked at has no value: zero would be wrong.
	if node.GetSharesListed() {
		mappings := map[string]int{}
		for _, share := range node.GetShares() {
			status := share.GetStatus()
			if !slices.Contains(mappingStates, status) {
				status = other
			}
			mappings[status]++
		}
		add(storageMappings, mappingStates, mappings)
	}
	if node.GetLinksSearched() {
		stale := 0
		for _, link := range node.GetLinks() {
			if link.GetStale() != "" {
				stale++
			}
		}
		all = append(all, storageCount{desc: storageStale, value: stale})
	}
	return all
}

func diskState(d *extensionv1.Disk) string {
	switch {
	case d.Online == nil:
		return unknown
	case !d.GetOnline():
		return diskOffline
	case problem.Silent(d): // Windows calls it online all the same
		return unknown
	case d.GetReadOnly():
		return diskReadOnly
	default:
		return diskOnline
	}
}

func fillOf(v *extensionv1.Volume) string {
	total, used := v.GetTotalBytes(), v.GetUsedBytes()
	if v.TotalBytes == nil || v.UsedBytes == nil || total <= 0 {
		return unknown
	}
	for _, class := range fills {
		if float64(used) <= float64(total)/100*class.most {
			return class.name
		}
	}
	return fills[len(fills)-1].name
}
