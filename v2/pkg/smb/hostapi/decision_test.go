package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var (
	allStates = []state{stateAbsent, stateConnected, stateDisconnected}
	allCauses = []cause{causeOpens, causeUnencrypted, causeOtherUser, causeDenied, causeUnreachable, causeNoAnswer, causeConflict, causePassword, causeSessionLost, causeRefused, causeUnclear}
	allOwners = []owner{ownerNone, ownerSameAccount, ownerNewPassword, ownerOtherUser, ownerUnknown}
	allAges   = []age{ageRecent, ageLasting}
)

// TestRules_Complete: each combination matches exactly one rule, and each rule some combination.
func TestRules_Complete(t *testing.T) {
	used := make([]bool, len(rules))
	combinations(allStates, allCauses, allOwners, allAges, func(s state, c cause, o owner, a age) {
		var matching []int
		for i, r := range rules {
			if r.matches(s, c, o, a) {
				matching = append(matching, i)
				used[i] = true
			}
		}
		if len(matching) != 1 {
			t.Errorf("%v, %v, %v, %v: the rules %v match, want exactly one", s, c, o, a, matching)
		}
	})
	if i := slices.Index(used, false); i >= 0 {
		t.Errorf("rule %d matches nothing", i)
	}
}

func combinations(states []state, causes []cause, owners []owner, ages []age, each func(state, cause, owner, age)) {
	for _, s := range states {
		for _, c := range causes {
			for _, o := range owners {
				for _, a := range ages {
					each(s, c, o, a)
				}
			}
		}
	}
}

// TestOwnerMatters: a mapping that works, or whose server is away, needs no look for its users.
func TestOwnerMatters(t *testing.T) {
	for _, s := range allStates {
		for _, c := range allCauses {
			first, differs := decide(s, c, ownerNone, ageRecent), false
			for _, o := range allOwners {
				for _, a := range allAges {
					differs = differs || decide(s, c, o, a) != first
				}
			}
			if got := ownerMatters(s, c); got != differs {
				t.Errorf("%v, %v: the owner matters: %v, want %v", s, c, got, differs)
			}
		}
	}
}

// TestCauseOf: each code has one cause.
func TestCauseOf(t *testing.T) {
	seen := map[winerr.Code]cause{}
	for c, codes := range causeCodes {
		for _, code := range codes {
			if other, twice := seen[code]; twice {
				t.Errorf("code %d is both %v and %v", code, c, other)
			}
			seen[code] = c
			if got := causeOf(code); got != c {
				t.Errorf("code %d is %v, want %v", code, got, c)
			}
		}
	}
	if c := causeOf(winerr.Code(4242)); c != causeUnclear {
		t.Errorf("code 4242 is %v", c)
	}
}

// DecisionTable is the table as the manual shows it.
func DecisionTable() string {
	var b strings.Builder
	b.WriteString("| Opening the share says | Windows codes |\n|---|---|\n")
	for _, c := range allCauses {
		var codes []string
		for _, code := range slices.Sorted(slices.Values(causeCodes[c])) {
			codes = append(codes, fmt.Sprint(uint32(code)))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", c, strings.Join(codes, ", "))
	}
	b.WriteString("\n| Opening the share says | Mapping's status | In use | Broken for | Decision | Why |\n|---|---|---|---|---|---|\n")
	for _, r := range rules {
		owners := join(r.owners)
		switch {
		case slices.Equal(r.owners, inUse):
			owners = "yes"
		case slices.Equal(r.owners, notOtherUser):
			owners = "yes, not by " + ownerOtherUser.String()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | **%s** | %s |\n",
			join(r.causes), join(r.states), owners, join(r.ages), r.action, r.why)
	}
	return b.String()
}

func join[T fmt.Stringer](list []T) string {
	if list == nil {
		return "any"
	}
	var names []string
	for _, value := range list {
		names = append(names, value.String())
	}
	return strings.Join(names, " or ")
}
