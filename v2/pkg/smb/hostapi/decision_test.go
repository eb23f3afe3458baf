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

// TestDecide pins every combination, in the order of the rules. The lists are its own, so that a
// change of those in the table shows.
func TestDecide(t *testing.T) {
	const (
		no, same, password, other, unknown = ownerNone, ownerSameAccount, ownerNewPassword, ownerOtherUser, ownerUnknown
		gone, ok, notOK                    = stateAbsent, stateConnected, stateDisconnected
		early, late                        = ageRecent, ageLasting
	)
	type (
		states = []state
		owners = []owner
		ages   = []age
	)
	cases := []struct {
		states states
		causes []cause
		owners owners
		ages   ages
		want   action
	}{
		{states{gone}, allCauses, allOwners, allAges, actionCreate},
		{states{ok}, on(causeOpens), allOwners, allAges, actionUse},
		{states{notOK}, on(causeOpens), allOwners, allAges, actionRecreate},
		{states{ok, notOK}, on(causeUnencrypted), owners{no}, allAges, actionRecreate},
		{states{ok, notOK}, on(causeUnencrypted), owners{same, password, other, unknown}, allAges, actionFail},
		{states{ok, notOK}, on(causeOtherUser), owners{no}, allAges, actionRecreate},
		{states{ok, notOK}, on(causeOtherUser), owners{same, password, other, unknown}, allAges, actionFail},
		{states{ok}, on(causeUnreachable), allOwners, allAges, actionFail},
		{states{notOK}, on(causeUnreachable), allOwners, allAges, actionAsk},
		{states{ok, notOK}, on(causeNoAnswer), allOwners, allAges, actionFail},
		{states{notOK}, on(causeDenied), allOwners, allAges, actionRecreate},
		{states{ok}, on(causeDenied), owners{no}, allAges, actionRecreate},
		{states{ok}, on(causeDenied), owners{same, password, other, unknown}, allAges, actionFail},
		{states{ok, notOK}, on(causeConflict), allOwners, allAges, actionRecreate},
		{states{notOK}, on(causePassword), allOwners, allAges, actionRecreate},
		{states{ok}, on(causePassword), owners{no}, allAges, actionRecreate},
		{states{ok}, on(causePassword), owners{password, unknown}, allAges, actionRecreate},
		{states{ok}, on(causePassword), owners{same}, ages{early}, actionFail},
		{states{ok}, on(causePassword), owners{same}, ages{late}, actionRecreate},
		{states{ok}, on(causePassword), owners{other}, allAges, actionFail},
		{states{ok, notOK}, on(causeSessionLost), owners{no}, allAges, actionRecreate},
		{states{ok}, on(causeSessionLost), owners{same, password, unknown}, ages{early}, actionFail},
		{states{notOK}, on(causeSessionLost), owners{same, password, unknown}, ages{early}, actionAsk},
		{states{ok, notOK}, on(causeSessionLost), owners{same, password, unknown}, ages{late}, actionRecreate},
		{states{ok}, on(causeSessionLost), owners{other}, allAges, actionFail},
		{states{notOK}, on(causeSessionLost), owners{other}, allAges, actionAsk},
		{states{ok, notOK}, on(causeRefused), owners{no}, allAges, actionRecreate},
		{states{ok}, on(causeRefused), owners{same, password, other, unknown}, allAges, actionFail},
		{states{notOK}, on(causeRefused), owners{same, password, other, unknown}, allAges, actionAsk},
		{states{ok}, on(causeUnclear), allOwners, allAges, actionFail},
		{states{notOK}, on(causeUnclear), owners{no}, allAges, actionRecreate},
		{states{notOK}, on(causeUnclear), owners{same, password, other, unknown}, ages{early}, actionAsk},
		{states{notOK}, on(causeUnclear), owners{same, password, other, unknown}, ages{late}, actionRecreate},
	}
	if len(cases) != len(rules) {
		t.Fatalf("%d cases for %d rules", len(cases), len(rules))
	}
	pinned := 0
	for i, want := range cases {
		combinations(want.states, want.causes, want.owners, want.ages, func(s state, c cause, o owner, a age) {
			pinned++
			got := decide(s, c, o, a)
			if got.action != want.want || got != rules[i].decision {
				t.Errorf("%v, %v, %v, %v: %v (%s), want %v, by rule %d", s, c, o, a, got.action, got.why, want.want, i)
			}
		})
	}
	if all := len(allStates) * len(allCauses) * len(allOwners) * len(allAges); pinned != all {
		t.Errorf("the cases have %d combinations, want %d", pinned, all)
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
