package winlayout

import "fmt"

// DecodeTargets reads what ReportIScsiTargetsW answers: names, each ended by a NUL, and an empty
// one at the end.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-reportiscsitargetsw
func DecodeTargets(b []byte) ([]string, error) {
	var names []string
	for len(b) >= nameUnits {
		end := 0
		for end+1 < len(b) && (b[end] != 0 || b[end+1] != 0) {
			end += nameUnits
		}
		switch {
		case end == 0:
			return names, nil
		case end+1 >= len(b):
			return nil, fmt.Errorf("a list of targets without an end: %w", ErrTruncated)
		case end > nameUnits*maxSessionNames:
			return nil, fmt.Errorf("a target with a name of %d characters: %w", end/nameUnits, ErrMalformed)
		}
		names = append(names, decodeUTF16(b[:end]))
		b = b[end+nameUnits:]
	}
	return names, nil
}
