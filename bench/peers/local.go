package peers

import (
	"context"
	"errors"
	"math"
	"net/http"

	"github.com/go-chi/httprate"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// A limiter in process gets its part of the limit, as an operator would set it up.
func part(n, instances int) int { return fit(n/max(instances, 1), math.MaxInt) }

const noRedis = "does not use Redis"

var xtime = Peer{
	Name: "x/time/rate", Module: "golang.org/x/time", Way: Local, Counts: "token bucket, limit / instances",
	Open: func(s Setup) (Limiter, error) {
		limiters := each[*rate.Limiter]{make: func(string) *rate.Limiter {
			return rate.NewLimiter(rate.Limit(float64(s.Rate)/s.Period.Seconds()/float64(s.Instances)), part(s.Burst, s.Instances))
		}}
		return decider{allow: func(_ context.Context, key string) (bool, error) {
			return limiters.get(key).Allow(), nil
		}}, nil
	},
	Out: map[string]string{"D": noRedis, "E": noRedis},
}

const blocks = "Take blocks until its turn and refuses nobody"

var uber = Peer{
	Name: "uber-go/ratelimit", Module: "go.uber.org/ratelimit", Way: Local, Counts: "leaky bucket, blocks",
	Open: func(s Setup) (Limiter, error) {
		limiters := each[ratelimit.Limiter]{make: func(string) ratelimit.Limiter {
			return ratelimit.New(part(s.Rate, s.Instances), ratelimit.Per(s.Period))
		}}
		return decider{allow: func(_ context.Context, key string) (bool, error) {
			limiters.get(key).Take()
			return true, nil
		}}, nil
	},
	Out: map[string]string{"C": blocks, "D": noRedis, "E": noRedis},
}

const noStore = "counts in process only: its Redis store, httprate-redis, could not be fetched"

var chi = Peer{
	Name: "go-chi/httprate", Module: "github.com/go-chi/httprate", Way: Local, Counts: "sliding window, limit / instances",
	Open: func(s Setup) (Limiter, error) {
		lim := httprate.NewRateLimiter(part(s.Rate, s.Instances), s.Period)
		r, err := http.NewRequest(http.MethodGet, "/", nil)
		if err != nil {
			return nil, err
		}
		return decider{allow: func(_ context.Context, key string) (bool, error) {
			w := page{header: http.Header{}}
			refused := lim.OnLimit(&w, r, key)
			return !refused, w.err
		}}, nil
	},
	Out: map[string]string{"D": noStore, "E": noStore},
}

// A page takes what httprate writes.
type page struct {
	header http.Header
	err    error
}

func (p *page) Header() http.Header         { return p.header }
func (p *page) Write(b []byte) (int, error) { return len(b), nil }

func (p *page) WriteHeader(code int) {
	if code >= http.StatusInternalServerError || code == http.StatusPreconditionRequired {
		p.err = errors.New("httprate: " + http.StatusText(code))
	}
}
