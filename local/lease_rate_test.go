package local_test

import (
	"math"
	"testing"
	"time"

	"github.com/resilient-go/limiter/local"
)

const micro = int64(local.Unit)

// rated is a lease of tokens, rate in micro-tokens per second and burst in
// micro-tokens, from the instant 0 until end; anybody may take before half of it.
func rated(tokens, rate, burst, end int64) *local.Lease {
	l := new(local.Lease)
	kept, _, _ := l.Report(0)
	l.Grant(kept, tokens, end/2, end, 0)
	l.Metered(rate, burst, 0, 0)
	return l
}

// held fails unless the lease holds at now that much, in micro-tokens. It reports.
func held(t *testing.T, l *local.Lease, now, want int64) {
	t.Helper()
	kept, _, _ := l.Report(now)
	if got := kept*micro + l.Part(); got != want {
		t.Fatalf("at %d the lease holds %d micro-tokens, want %d", now, got, want)
	}
}

func TestLeaseEarnsByItsRate(t *testing.T) {
	for _, c := range []struct{ rate, now, want int64 }{
		{1000 * micro, ms, micro},
		{1000 * micro, ms - 1, micro - 1},
		{1000 * micro, 1, 1},
		{1000 * micro, 0, 0},
		{333_333_333, 3 * ms, 999_999},
		{1, second, 1},
		{1, second - 1, 0},
		{1 << 52, 1, 4_503_599},
	} {
		held(t, rated(0, c.rate, 1000*micro, 2*second), c.now, c.want)
	}
}

func TestLeaseEarnsTheSameHoweverOftenItIsAsked(t *testing.T) {
	l := rated(0, 123_456_789, 1000*micro, 2*second)
	for now := int64(0); now < second; now += 1013 {
		l.Meter(1, now)
	}
	held(t, l, second, 123_456_789)
}

func TestLeaseEarnsUpToItsBurst(t *testing.T) {
	held(t, rated(0, 1000*micro, 5*micro+7, 2*second), second, 5*micro+7)
	held(t, rated(9, 1000*micro, 5*micro, 2*second), second, 9*micro)
}

func TestFullLeaseEarnsNothingForWhatIsTakenLater(t *testing.T) {
	l := rated(5, 1000*micro, 5*micro, 2*second)
	if _, _, ok := l.Take(900*ms, 5); !ok {
		t.Fatal("5 of 5 were refused")
	}
	if l.TakeLate(900*ms, 1) {
		t.Error("a sixth was there at once: the lease earned while it was full")
	}
	if l.TakeLate(901*ms-1, 1) || !l.TakeLate(901*ms, 1) {
		t.Error("the sixth is not there after exactly one more millisecond")
	}
}

func TestLeaseTakeLateEarnsFromItsOwnInstantOn(t *testing.T) {
	l := rated(5, 1000*micro, 5*micro, 2*second)
	for i := range int64(5) {
		if !l.TakeLate(10*ms+i, 1) {
			t.Fatalf("take %d was refused", i)
		}
	}
	held(t, l, 13*ms, 3*micro)
}

func TestLeaseEarnsNothingAfterItsEnd(t *testing.T) {
	l := rated(0, 1000*micro, 1000*micro, second)
	if !l.TakeLate(second-1, 999) || l.TakeLate(second, 1) {
		t.Error("999 before the end and nothing at it, that was not so")
	}
	l = rated(0, 1000*micro, 1000*micro, second)
	if kept, spent, lost := l.Report(2 * second); kept != 0 || spent != 0 || lost != 0 || l.Rate() != 0 || !l.Idle() {
		t.Errorf("after the end: kept %d, spent %d, lost %d, rate %d", kept, spent, lost, l.Rate())
	}
	l = rated(0, 1000*micro, 1000*micro, second)
	if held, part, spent, lost := l.Remove(2 * second); held != 0 || part != 0 || spent != 0 || lost != 1000 {
		t.Errorf("Remove after the end = %d, %d, %d, %d", held, part, spent, lost)
	}
}

func TestLeaseRestsWhileAMessageIsUnderWay(t *testing.T) {
	for _, c := range []struct{ before, after, want int64 }{
		{1000, 1000, 15}, // 10 before, 2 on the way, 3 after
		{1000, 500, 12 + 500*3/1000},
		{500, 1000, 9}, // 5, 1, 3
		{1000, 0, 10},
		{0, 1000, 3},
	} {
		l := rated(0, c.before*micro, 100*micro, second)
		kept, _, _ := l.Report(10 * ms)
		if !l.Paused() {
			t.Error("it is not paused")
		}
		if d, ok := l.Meter(kept+1, 12*ms); ok && d != time.Duration(second/c.before/1) {
			t.Errorf("it earned on the way: %v", d)
		}
		l.Grant(kept, kept, second/2, second, 0)
		l.Metered(c.after*micro, 100*micro, 10*ms, 12*ms)
		if l.Paused() || l.Rate() != c.after*micro || l.Idle() != (c.after == 0 && kept == 0) {
			t.Errorf("%+v: paused %v, rate %d, idle %v", c, l.Paused(), l.Rate(), l.Idle())
		}
		want := c.want * micro
		if c.after == 500 {
			want = 12*micro + micro/2 // 10, 1, 1.5
		}
		held(t, l, 15*ms, want)
	}
}

func TestLeaseMakesUpForNothingAfterALostAnswer(t *testing.T) {
	l := rated(0, 1000*micro, 100*micro, second)
	l.Report(10 * ms) // its answer, which may have set any rate, is lost
	held(t, l, 30*ms, 10*micro)
	l.Grant(10, 10, second/2, second, 0)
	l.Metered(1000*micro, 100*micro, 30*ms, 35*ms)
	held(t, l, 36*ms, 11*micro)
}

func TestLeaseMeterTellsWhen(t *testing.T) {
	l := rated(2, 3*micro, 10*micro, 10*second)
	for _, c := range []struct {
		n, now int64
		want   time.Duration
		ok     bool
	}{
		{3, 0, 333_333_334, true},
		{2, 0, 1, true},
		{10, 0, 2_666_666_667, true},
		{11, 0, 0, false},
		{3, second / 3, 334, true}, // of the last micro-token, it does not count what is there
		{3, second/3 + 1, 1, true},
		{6, second, 333_333_334, true},
		{6, 10 * second, 0, false},
	} {
		if d, ok := l.Meter(c.n, c.now); d != c.want || ok != c.ok {
			t.Errorf("Meter(%d, %d) = %v, %v; want %v, %v", c.n, c.now, d, ok, c.want, c.ok)
		}
	}
	if _, ok := granted(5).Meter(6, 0); ok {
		t.Error("a lease without a rate says when")
	}
	if d, ok := rated(0, 1, 1<<52, 30*second).Meter(1<<12, 0); !ok || d <= 0 || d > math.MaxInt64/2 {
		t.Errorf("a very long time is %v, %v", d, ok)
	}
}

func TestLeaseRights(t *testing.T) {
	l := rated(2, 3*micro, 10*micro-1, second)
	if got := l.Rights(0); got != 10 {
		t.Errorf("rights of %d, want its burst in whole tokens, 10", got)
	}
	if got := rated(12, 3*micro, 10*micro, second).Rights(0); got != 12 {
		t.Errorf("rights of %d, want the balance, 12", got)
	}
	if got := l.Rights(second); got != 0 {
		t.Errorf("rights of %d after the end", got)
	}
	if got := granted(5).Rights(0); got != 5 {
		t.Errorf("rights of %d of a lump of 5", got)
	}
}

func TestLeaseEarnedIsToldOnce(t *testing.T) {
	l := rated(0, 1000*micro, 100*micro, second)
	l.Report(5*ms + 1)
	if n, again := l.Earned(), l.Earned(); n != 5 || again != 0 {
		t.Errorf("earned %d and then %d, want 5 and 0", n, again)
	}
}

func TestLeaseRemoveGivesThePartAsWell(t *testing.T) {
	l := rated(2, 1000*micro, 100*micro, second)
	l.Take(0, 1)
	if held, part, spent, lost := l.Remove(3*ms + ms/4); held != 4 || part != micro/4 || spent != 1 || lost != 0 {
		t.Errorf("Remove = %d, %d, %d, %d; want 4, 250000, 1, 0", held, part, spent, lost)
	}
	if l.Rate() != 0 || l.Part() != 0 || !l.Idle() {
		t.Error("something is left")
	}
}

func TestLeaseThatIsCutLosesItsPart(t *testing.T) {
	l := rated(2, 1000*micro, 100*micro, second)
	kept, _, _ := l.Report(ms / 2)
	l.Grant(kept, 1, second/2, second, 0)
	l.Metered(0, 0, ms/2, ms)
	held(t, l, ms, micro)
}

// Worth tells what the next report would, and changes nothing.
func TestLeaseIsWorthWhatItWouldReport(t *testing.T) {
	l := rated(5, 123_456_789, 100*micro, second)
	for now := int64(0); now <= second; now += 7_654_321 {
		l.Take(now, 1)
		worth := l.Worth(now)
		if again := l.Worth(now); again != worth {
			t.Fatalf("at %d it is worth %d and then %d", now, worth, again)
		}
		held(t, l, now, worth)
		l.Grant(worth/micro, worth/micro, second/2, second, 0)
		l.Metered(123_456_789, 100*micro, now, now)
	}
	if worth := l.Worth(second); worth != 0 {
		t.Errorf("at its end it is worth %d", worth)
	}
	l = rated(5, 10*micro, 100*micro, second)
	l.Report(0) // a message is under way: nothing is earned until the answer makes up for it
	if worth := l.Worth(100 * ms); worth != 6*micro {
		t.Errorf("under way it is worth %d, want 5 and 1 that the answer may bring", worth)
	}
}
