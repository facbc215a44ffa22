package local

import (
	"testing"
	"time"
)

// A request takes from all quotas that stand beside each other or from none, and is
// told when the last of them has enough.
func TestQuotasBesideEachOther(t *testing.T) {
	q := NewQuota(10, 10, 10, 0)
	minute := NewQuota(0.5, 15, 15, 0)
	q.Beside(minute)
	step := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	step("the most at once", q.Burst(), int64(10))
	step("all is there", q.Full(0), true)
	step("ten", q.Take(10, 0), true)
	step("left", q.Tokens(0), int64(0))
	step("the other one has", minute.Tokens(0), int64(5))
	step("one more", q.Take(1, 0), false)
	step("a refusal takes nothing", minute.Tokens(0), int64(5))
	step("when one fits", q.RetryAfter(1, 0), 100*time.Millisecond)
	now := int64(time.Second)
	step("after a second the other one is the tighter", q.Tokens(now), int64(5))
	step("six", q.Take(6, now), false)
	step("nothing is taken", q.own(now), int64(10))
	step("when six fit", q.RetryAfter(6, now), time.Second)
	step("five", q.Take(5, now), true)
	step("what is missing of the emptiest", q.Missing(now), int64(15))
	now += int64(20 * time.Second)
	step("full is when all are", q.Full(now), false)
	step("and that is", q.Full(now+int64(9*time.Second)), true)
	step("more than one of them holds", NewQuota(10, 20, 20, 0).with(minute).Take(16, now+int64(time.Hour)), false)
}

func (q *Quota) with(other *Quota) *Quota {
	q.Beside(other)
	return q
}
