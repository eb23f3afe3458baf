package record

import "slices"

// maxRaw is how many bytes of a request and of an answer are recorded.
const maxRaw = 4 << 10

// Raw is what was exchanged below the seam: the bytes of a control code, or a row that WMI answered. It
// is test data for decoders.
type Raw struct {
	After uint64           `json:"after"` // the number of the last call that had begun
	Code  uint32           `json:"code,omitzero"`
	In    []byte           `json:"in,omitzero"`
	Out   []byte           `json:"out,omitzero"`
	Cut   bool             `json:"cut,omitzero"` // a request or answer was longer
	Class string           `json:"class,omitzero"`
	Rows  []map[string]any `json:"rows,omitzero"`
	Error *Failure         `json:"error,omitzero"`
}

// ControlCode records a control code and what was exchanged. It is for winapi.Tap.
func (r *Recorder) ControlCode(code uint32, in, out []byte, err error) {
	r.raw(Raw{Code: code, In: cut(in), Out: cut(out), Cut: len(in) > maxRaw || len(out) > maxRaw, Error: failureOf(err)})
}

// Rows records what WMI answered to a query. It is for cim.Tap.
func (r *Recorder) Rows(class string, rows []map[string]any, err error) {
	r.raw(Raw{Class: class, Rows: rows, Error: failureOf(err)})
}

func cut(b []byte) []byte { return slices.Clone(b[:min(len(b), maxRaw)]) }

// raw writes a line. Bytes hold names and serial numbers, so there is none if they are hashed.
func (r *Recorder) raw(raw Raw) {
	if r.hasher != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	raw.After = r.seq
	r.writeLine(line{Raw: &raw})
}
