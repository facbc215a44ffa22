package redistest

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// SilenceClientLog turns off the log that go-redis keeps for all its clients,
// which an outage would fill with the errors that the test expects anyway.
// Call it from TestMain.
func SilenceClientLog() { redis.SetLogger(&logging.VoidLogger{}) }
