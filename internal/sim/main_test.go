package sim

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// full asks for the large counts.
var full = os.Getenv("LIMITER_FULL") != ""

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
