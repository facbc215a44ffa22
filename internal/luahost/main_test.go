package luahost

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
)

// full asks for the large counts.
var full = os.Getenv("LIMITER_FULL") != ""

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}
