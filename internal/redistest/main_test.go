package redistest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}
