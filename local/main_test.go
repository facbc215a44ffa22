package local_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// full asks for the large counts: LIMITER_FULL=1.
var full = os.Getenv("LIMITER_FULL") == "1"

// many is how often something is repeated.
func many(short, long int) int {
	if full {
		return long
	}
	return short
}

func TestMain(m *testing.M) {
	checks := "1000"
	if full {
		checks = "100000"
	}
	if err := flag.Set("rapid.checks", checks); err != nil { // the command line overrides it
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const (
	ms     = int64(1e6) // in nanoseconds, as instants are
	second = int64(1e9)
	day    = 24 * 3600 * second
)
