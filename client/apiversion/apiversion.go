// Package apiversion parses and orders the version names of the CSI Proxy API
// groups: v1alpha1, v1beta2, v1, v2alpha1 and so on, in the style of Kubernetes.
package apiversion

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Version is one API version. It can only be had from [NewVersion], so every
// Version but the zero one is well-formed. Versions are comparable with == and
// fit as map keys. The zero Version stands before all others; its name is empty.
type Version struct {
	major uint32
	stage stage
	// revision counts within the stage: 2 in v1alpha2. It is 0 for stable.
	revision uint32
}

// stage is the maturity of a version. The constants are in the order of ripening,
// which Compare relies on.
type stage uint8

const (
	alpha stage = iota
	beta
	stable
)

func (s stage) String() string { return [...]string{alpha: "alpha", beta: "beta", stable: ""}[s] }

// NewVersion parses a version name: a lower-case v, a number, and for versions
// that are not stable yet "alpha" or "beta" with a number of its own. Numbers
// start at 1, have no leading zeros and fit into 32 bits, so that every Version
// has exactly one name.
func NewVersion(name string) (version Version, err error) {
	version, err = parse(name)
	if err != nil {
		return Version{}, fmt.Errorf("API version %q: %w (valid are names such as v1, v1beta2, v2alpha1)", name, err)
	}
	return version, nil
}

// NewVersionOrPanic is NewVersion for names that are constants of the program.
func NewVersionOrPanic(name string) Version {
	version, err := NewVersion(name)
	if err != nil {
		panic(err)
	}
	return version
}

// IsValidVersion reports whether NewVersion accepts name.
func IsValidVersion(name string) bool {
	_, err := parse(name)
	return err == nil
}

func parse(name string) (Version, error) {
	rest, ok := strings.CutPrefix(name, "v")
	if !ok {
		return Version{}, errors.New("it does not begin with a lower-case v")
	}
	version := Version{stage: stable}
	var err error
	if version.major, rest, err = number(rest); err != nil {
		return Version{}, fmt.Errorf("after v: %w", err)
	}
	if rest == "" {
		return version, nil
	}

	if after, ok := strings.CutPrefix(rest, "alpha"); ok {
		version.stage, rest = alpha, after
	} else if after, ok := strings.CutPrefix(rest, "beta"); ok {
		version.stage, rest = beta, after
	} else {
		return Version{}, fmt.Errorf("%q is neither alpha nor beta with a number", rest)
	}
	if version.revision, rest, err = number(rest); err != nil {
		return Version{}, fmt.Errorf("after %s: %w", version.stage, err)
	}
	if rest != "" {
		return Version{}, fmt.Errorf("%q follows where the name should end", rest)
	}
	return version, nil
}

// number cuts the decimal number that s begins with from the rest of s.
func number(s string) (n uint32, rest string, err error) {
	end := 0
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	digits, rest := s[:end], s[end:]
	switch {
	case digits == "":
		return 0, "", errors.New("a number is missing")
	case digits[0] == '0':
		return 0, "", fmt.Errorf("the number %s begins with 0", digits)
	}
	wide, err := strconv.ParseUint(digits, 10, 32)
	if err != nil { // nothing but the range is left to be wrong
		return 0, "", fmt.Errorf("the number %s does not fit into 32 bits", digits)
	}
	return uint32(wide), rest, nil
}

// Comparison is the result of [Version.Compare].
type Comparison int

// The results of a comparison.
const (
	Lesser  Comparison = -1
	Equal   Comparison = 0
	Greater Comparison = 1
)

// Compare returns Lesser if v is older than other, Greater if it is newer, and
// Equal if they are the same. The major number decides first, then the stage,
// then the number within the stage:
//
//	v1alpha1 < v1alpha2 < v1beta1 < v1 < v2alpha1 < v2
//
// This is the order of age. Kubernetes sorts the versions of a resource for
// display otherwise: there all stable versions stand before all beta versions.
func (v Version) Compare(other Version) Comparison {
	return Comparison(cmp.Or(
		cmp.Compare(v.major, other.major),
		cmp.Compare(v.stage, other.stage),
		cmp.Compare(v.revision, other.revision),
	))
}

// String returns the name that NewVersion accepts.
func (v Version) String() string {
	switch {
	case v == Version{}:
		return ""
	case v.stage == stable:
		return fmt.Sprintf("v%d", v.major)
	default:
		return fmt.Sprintf("v%d%s%d", v.major, v.stage, v.revision)
	}
}
