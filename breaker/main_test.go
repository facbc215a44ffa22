package breaker_test

import (
	"errors"
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/breaker"
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
	checks := "500"
	if full {
		checks = "50000"
	}
	if err := flag.Set("rapid.checks", checks); err != nil { // the command line overrides it
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// The outcomes of calls in these tests, one for each verdict.
var (
	errFailed  = errors.New("failed")
	errHung    = errors.New("hung")
	errFatal   = errors.New("fatal")
	errIgnored = errors.New("ignored")
)

func judge(err error) breaker.Verdict {
	switch err {
	case nil:
		return breaker.Healthy
	case errIgnored:
		return breaker.Ignored
	case errHung:
		return breaker.Hung
	case errFatal:
		return breaker.Fatal
	default:
		return breaker.Failed
	}
}
