package lua_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
)

// full asks for the large counts.
var full = os.Getenv("LIMITER_FULL") != ""

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	flag.Parse()
	checks := "40"
	if full {
		checks = "5000"
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(checks); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
