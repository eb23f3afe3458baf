package policy

import "fmt"

// Limit returns a host that is limited to working directories. Our own hosts can be; those
// that drivers write themselves, such as the fakes in their tests, need not offer it.
func Limit[H any](host H, workingDirs []string) (H, error) {
	policy, err := New(workingDirs)
	if err != nil {
		return host, err
	}
	limitable, ok := any(host).(interface{ Within(policy *Policy) H })
	if !ok {
		return host, fmt.Errorf("a host of type %T cannot be limited to working directories", host)
	}
	return limitable.Within(policy), nil
}
