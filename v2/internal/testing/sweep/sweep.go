// Package sweep chooses which cases of a sweep a test tries. A sweep has hundreds of cases, such as each call of an
// operation failing with each code. With -short, as 'make test' runs tests, a seed decides on a sample of them.
package sweep

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seedVariable has the seed of the samples, a number. The Makefile sets and prints one for each day: the go command
// keeps the results of tests until it changes.
const seedVariable = "CSI_PROXY_SEED"

// OneIn returns a function that reports for each case of a sweep whether to try it: one in n of them, or all without
// -short. The choice follows from the seed and the name of the test, if the sweep asks in the same order. The test itself
// calls it, not a helper: so 'make test-whole' finds the test.
func OneIn(t testing.TB, n int) (try func() bool) {
	t.Helper()
	if !testing.Short() {
		return func() bool { return true }
	}
	return sample(t, n)
}

func sample(t testing.TB, n int) (try func() bool) {
	t.Helper()
	seed := os.Getenv(seedVariable)
	number, err := strconv.ParseUint(seed, 10, 64)
	if err != nil && seed != "" {
		t.Fatalf("%s=%s is not a number", seedVariable, seed)
	}
	t.Logf("one in %d cases, chosen by %s=%d", n, seedVariable, number)
	name := fnv.New64()
	_, _ = name.Write([]byte(t.Name()))
	chance := rand.New(rand.NewPCG(number, name.Sum64())) //nolint:gosec // it must repeat itself
	return func() bool { return chance.IntN(n) == 0 }
}
