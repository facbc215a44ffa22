package local_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/local"
)

func TestQuotaReshapedUpKeepsItsTokens(t *testing.T) {
	q := local.NewQuota(10, 10, 3, 0)
	q.Reshape(100, 50, 200*ms) // two were gained by the old rate
	if q.Tokens(200*ms) != 5 || q.Burst() != 50 {
		t.Fatalf("there are %d tokens of %d, want 5 of 50", q.Tokens(200*ms), q.Burst())
	}
	if got, want := q.RetryAfter(50, 200*ms), 450*time.Millisecond; got != want {
		t.Errorf("a burst takes %v, want %v", got, want)
	}
	if q.Take(50, 649*ms) || !q.Take(50, 650*ms) {
		t.Error("a burst was not had when it was due, or a millisecond before")
	}
}

func TestQuotaReshapedDownIsCutToItsBurst(t *testing.T) {
	q := local.NewQuota(100, 50, 50, 0)
	q.Reshape(10, 5, 0)
	if q.Tokens(0) != 5 || q.Burst() != 5 || !q.Full(0) || q.Take(6, 0) || !q.Take(5, 0) {
		t.Fatal("a burst of 5 must give 5 and not 6")
	}
	if q.Take(1, 99*ms) || !q.Take(1, 101*ms) {
		t.Error("a token of ten per second was not had after 100 ms, give or take one")
	}
	q.Reshape(100, 50, 101*ms)
	if got := q.Tokens(101 * ms); got != 0 {
		t.Errorf("down and up again gives %d tokens, want none", got)
	}
}

func TestQuotaReshapedByAClockThatGoesBack(t *testing.T) {
	q := local.NewQuota(10, 10, 0, second)
	q.Reshape(1000, 1000, 0)
	if got := q.Tokens(second); got != 0 {
		t.Errorf("a reshape in the past gives %d tokens, want none", got)
	}
	if q.Take(1, second+ms/2) || !q.Take(1, second+ms) {
		t.Error("a token of the new rate was not had after 1 ms, and no earlier")
	}
}

func TestQuotaReshapedBelowOneKeepsABurstOfOne(t *testing.T) {
	q := local.NewQuota(10, 10, 10, 0)
	q.Reshape(0.5, 0, 0)
	if q.Burst() != 1 || q.Tokens(0) != 1 || !q.Take(1, 0) || q.Take(1, 2*second-ms) || !q.Take(1, 2*second) {
		t.Error("a burst of 0 does not give one token every 2 s")
	}
}
