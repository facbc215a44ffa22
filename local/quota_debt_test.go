package local_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/local"
)

func TestQuotaBooksIntoADebt(t *testing.T) {
	const ms = int64(time.Millisecond)
	q := local.NewQuota(10, 10, 10, 0)
	for _, c := range []struct {
		n, least, now int64
		delay         time.Duration
		ok            bool
	}{
		{11, -10, 0, 0, false},
		{0, -10, 0, 0, false},
		{-1, -10, 0, 0, false},
		{8, 2, 0, 0, true},
		{1, 2, 0, 0, false},
		{4, -10, 0, 200 * time.Millisecond, true},
		{9, -10, 0, 0, false},
		{8, -10, 0, time.Second, true},
		{1, -10, 99 * ms, 0, false},
		{1, -10, 100 * ms, time.Second, true},
	} {
		if delay, ok := q.Book(c.n, c.least, c.now); delay != c.delay || ok != c.ok {
			t.Errorf("Book(%d, %d, %d) = %v, %v; want %v, %v", c.n, c.least, c.now, delay, ok, c.delay, c.ok)
		}
	}
	if q.Take(1, 1199*ms) || !q.Take(1, 1200*ms) {
		t.Error("the debt is not paid when it should be")
	}
}

func TestQuotaGivesAndOwesWithinItsBurst(t *testing.T) {
	q, o := local.NewQuota(1, 10, 4, 0), local.NewQuota(1, 20, 4, 0)
	q.Beside(o)
	if n := q.Give(3, 0); n != 3 || q.Tokens(0) != 7 || o.Tokens(0) != 7 {
		t.Errorf("%d given, %d and %d", n, q.Tokens(0), o.Tokens(0))
	}
	if n := q.Give(5, 0); n != 3 || q.Tokens(0) != 10 {
		t.Errorf("%d given of five, where three had room: %d", n, q.Tokens(0))
	}
	if n := q.Give(-2, 0); n != 0 || q.Tokens(0) != 10 {
		t.Errorf("%d given of none: %d", n, q.Tokens(0))
	}
	if n := q.Owe(15, 0); n != 15 || q.Tokens(0) != 0 {
		t.Errorf("%d owed of 15: %d", n, q.Tokens(0))
	}
	if n := q.Owe(15, 0); n != 5 { // a debt of ten
		t.Errorf("%d owed, want the five that are left of a debt of ten", n)
	}
	if n := q.Give(25, 0); n != 20 || q.Tokens(0) != 10 {
		t.Errorf("%d given, want 20: %d", n, q.Tokens(0))
	}
}
