package policy

import "fmt"

// Limiter is a host of type H that can be limited by a policy.
type Limiter[H any] interface {
	// Within returns the same host, limited by a policy. Nil means no limits.
	Within(p *Policy) H
}

// Limit returns a host that is limited to working directories. It fails for a host that is
// not a Limiter, such as a fake that a driver wrote for its tests.
func Limit[H any](host H, workingDirs []string) (H, error) {
	policy, err := New(workingDirs)
	if err != nil {
		return host, err
	}
	return within(host, policy)
}

// LimitUnsafe is Limit for an operator who insists on directories that New refuses.
func LimitUnsafe[H any](host H, workingDirs []string) (H, error) {
	policy, err := NewUnsafe(workingDirs)
	if err != nil {
		return host, err
	}
	return within(host, policy)
}

func within[H any](host H, policy *Policy) (H, error) {
	limiter, ok := any(host).(Limiter[H])
	if !ok {
		return host, fmt.Errorf("a host of type %T cannot be limited to working directories", host)
	}
	return limiter.Within(policy), nil
}
