package promlimit_test

import (
	"os"
	"testing"

	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	os.Exit(m.Run())
}
