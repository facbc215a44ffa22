package hybrid_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// The pictures of docs/algorithms.md are what the algorithms do.
func TestPicturesOfTheAlgorithms(t *testing.T) {
	text, err := os.ReadFile("../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		heading, note string
		algo          hybrid.Algorithm
		early         bool // one request, and the flood begins at 0.9 s
		wait          bool
	}{
		{"Token bucket", "", hybrid.TokenBucket, false, false},
		{"Leaky bucket", "   Wait", hybrid.LeakyBucket, false, true},
		{"Leaky bucket", "   Take", hybrid.LeakyBucket, false, false},
		{"Fixed window", "   a flood from the first instant", hybrid.FixedWindow, false, false},
		{"Fixed window", "   one, then a flood that begins at 0.9 s", hybrid.FixedWindow, true, false},
		{"Sliding log", "", hybrid.SlidingLog, false, false},
		{"Rolling window", "   a flood from the first instant", hybrid.RollingWindow, false, false},
		{"Rolling window", "   one, then a flood that begins at 0.9 s", hybrid.RollingWindow, true, false},
	} {
		t.Run(c.heading+c.note, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, hybrid.PerSecond(10), hybrid.WithAlgorithm(c.algo), hybrid.WithLeaseHorizon(10*time.Millisecond))
				warm(t, lim)
				admitted := make([]int, 32)
				begun := time.Now()
				if c.early {
					allow(t, lim)
					admitted[0]++
					time.Sleep(900 * time.Millisecond)
				}
				for {
					var err error
					res := hybrid.Result{}
					if c.wait {
						res, err = lim.Wait(t.Context(), "k")
					} else {
						res = allow(t, lim)
					}
					// What is due at the end of a tenth may be a moment late.
					tenth := int((time.Since(begun) + time.Microsecond) / (100 * time.Millisecond))
					if err != nil || tenth >= len(admitted) {
						break
					}
					if res.Allowed {
						admitted[tenth]++
					} else {
						time.Sleep(500 * time.Microsecond)
					}
				}
				picture := ""
				for _, n := range admitted {
					picture += string([]rune(" 123456789X")[min(n, 10)])
				}
				line := strings.TrimRight(picture+c.note, " ")
				section := string(text)
				section = section[strings.Index(section, "### "+c.heading):]
				if end := strings.Index(section[4:], "\n##"); end >= 0 {
					section = section[:end+4]
				}
				if !strings.Contains(section, "\n"+line+"\n") {
					t.Errorf("%s: the picture is\n%s", c.heading, line)
				}
			})
		})
	}
}
