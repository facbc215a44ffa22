package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}

// small is a fifth of the defaults, which is enough.
var small = Settings{Limit: 200, Burst: 200, Load: 400, Instances: 5, Share: 1, Horizon: 200, Algorithm: "token bucket"}

// play runs an engine on fake time.
func play(t *testing.T, s Settings, f func(t *testing.T, e *engine, r *redistest.Mini)) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		r.Delay(time.Millisecond)
		e, err := start(&switched{owner: &redistest.Owner{}, name: "a bubble", box: r}, s)
		if err != nil {
			t.Fatal(err)
		}
		defer e.close()
		f(t, e, r)
	})
}

// pass lets time pass and returns the frames of it.
func pass(e *engine, d time.Duration) []Frame {
	from := e.at()
	time.Sleep(d)
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	var frames []Frame
	for _, f := range e.frames {
		if f.At > from {
			frames = append(frames, f)
		}
	}
	return frames
}

// total is the sum of one number of each frame.
func total(frames []Frame, of func(Frame) int) (n int) {
	for _, f := range frames {
		n += of(f)
	}
	return n
}

func admitted(f Frame) (n int) {
	for _, v := range f.Allowed {
		n += v
	}
	return n
}

func refusedBy(f Frame) (n int) {
	for _, v := range f.Refused {
		n += v
	}
	return n
}

func calls(f Frame) (n int) {
	for _, v := range f.Calls {
		n += v
	}
	return n
}

// kinds are those of the lines in the log, in order, of one who, but for the number
// of instances, which is told when it is.
func kinds(e *engine, who string) (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lines {
		if l.Who == who && l.Kind != "instances" {
			out = append(out, l.Kind)
		}
	}
	return out
}

func near(t *testing.T, what string, got, want, by int) {
	t.Helper()
	if got < want-by || got > want+by {
		t.Errorf("%s: %d, want %d ± %d", what, got, want, by)
	}
}

// checkBound says if a window held more than the bound, and that some held anything.
func checkBound(t *testing.T, frames []Frame) {
	t.Helper()
	for _, w := range frames[len(frames)-1].Worst {
		if w.Paid == 0 || w.Paid > w.Bound {
			t.Errorf("worst window of %v s: %d, want above 0 and at most %d", w.Window, w.Paid, w.Bound)
		}
	}
}

func TestLoadAboveTheLimitIsCutToIt(t *testing.T) {
	play(t, small, func(t *testing.T, e *engine, _ *redistest.Mini) {
		warm := pass(e, 3*time.Second)
		checkBound(t, warm)
		frames := pass(e, 10*time.Second)
		if len(frames) != 100 {
			t.Fatalf("%d frames in 10 s, want 100", len(frames))
		}
		near(t, "requests", total(frames, admitted)+total(frames, refusedBy), 4000, 10)
		near(t, "admitted", total(frames, admitted), 2000, 20)
		near(t, "calls to Redis", total(frames, calls), 5*5*10, 60)
		for i := range 5 {
			near(t, "admitted by one instance", total(frames, func(f Frame) int { return f.Allowed[i] }), 400, 40)
		}
		checkBound(t, frames)
		last := frames[99]
		if last.Limit != 20 || slices.Contains(last.Degraded, true) || slices.Contains(last.Breakers, "open") {
			t.Errorf("a healthy frame says %+v", last)
		}
	})
}

func TestSettingsApplyWhileItRuns(t *testing.T) {
	play(t, small, func(t *testing.T, e *engine, _ *redistest.Mini) {
		pass(e, 3*time.Second)
		set := func(change func(s *Settings)) {
			s := e.now()
			change(&s)
			if err := e.apply(s); err != nil {
				t.Fatal(err)
			}
			pass(e, 3*time.Second)
		}
		per := func(of func(Frame) int) int { return total(pass(e, 10*time.Second), of) }

		set(func(s *Settings) { s.Limit, s.Burst = 100, 50 })
		near(t, "admitted under 100/s", per(admitted), 1000, 20)
		set(func(s *Settings) { s.Load = 50 })
		near(t, "admitted of 50/s", per(admitted), 500, 10)
		set(func(s *Settings) { s.Load, s.Skew = 500, 1 })
		near(t, "requests on the second instance", per(func(f Frame) int { return f.Allowed[1] + f.Refused[1] }), 0, 0)
		near(t, "admitted by one for all", per(admitted), 1000, 20)
		set(func(s *Settings) { s.Instances, s.Share, s.Horizon = 2, 0.5, 100 })
		frames := pass(e, 10*time.Second)
		if n := len(frames[0].Allowed); n != 2 {
			t.Errorf("%d instances, want 2", n)
		}
		near(t, "admitted by one with half", total(frames, admitted), 500, 30)
		checkBound(t, frames)
		if got := kinds(e, "you"); len(got) != 4 {
			t.Errorf("%d changes in the log, want 4", len(got))
		}
	})
}

// Each algorithm keeps its own bound under twice the limit, and uses the limit up.
func TestEachAlgorithmKeepsItsBound(t *testing.T) {
	for name := range algorithms {
		t.Run(name, func(t *testing.T) {
			s := small
			s.Algorithm = name
			play(t, s, func(t *testing.T, e *engine, _ *redistest.Mini) {
				frames := pass(e, 3*time.Second)
				checkBound(t, frames)
				frames = pass(e, 5*time.Second)
				near(t, "admitted", total(frames, admitted), 1000, 100)
				checkBound(t, frames)
				next := small
				if name == small.Algorithm {
					next.Algorithm = hybrid.SlidingLog.String()
				}
				if err := e.apply(next); err != nil {
					t.Fatal(err)
				}
				checkBound(t, pass(e, 3*time.Second))
			})
		})
	}
}

func TestWrongSettingsChangeNothing(t *testing.T) {
	play(t, small, func(t *testing.T, e *engine, _ *redistest.Mini) {
		s := small
		s.Instances = 0
		if err := e.apply(s); err == nil || !strings.Contains(err.Error(), "instances: from 1 to 12") {
			t.Errorf("no instances: %v", err)
		}
		if e.now() != small {
			t.Errorf("the settings are %+v now", e.now())
		}
	})
}

// TestFrozenRedisIsSeenThrough is what the page is for: Redis hangs, all instances
// say so and go on near the limit, and come back by themselves.
func TestFrozenRedisIsSeenThrough(t *testing.T) {
	play(t, small, func(t *testing.T, e *engine, _ *redistest.Mini) {
		pass(e, 3*time.Second)
		for _, a := range []action{freeze, kill} {
			if err := e.do(a); err != nil {
				t.Fatal(err)
			}
			pass(e, 2*time.Second)
			frames := pass(e, 5*time.Second)
			near(t, string(a)+": admitted", total(frames, admitted), 1000, 20)
			last := frames[len(frames)-1]
			if slices.Contains(last.Degraded, false) || slices.Contains(last.Breakers, "closed") {
				t.Errorf("%s: not all are degraded: %+v", a, last)
			}
			if n := last.Admitted["degraded"]; n != admitted(last) {
				t.Errorf("%s: the outage policy admitted %d of %d", a, n, admitted(last))
			}
			back := restart
			if a == freeze {
				back = thaw
			}
			if err := e.do(back); err != nil {
				t.Fatal(err)
			}
			pass(e, 3*time.Second)
			frames = pass(e, 5*time.Second)
			near(t, string(back)+": admitted", total(frames, admitted), 1000, 30)
			if last := frames[len(frames)-1]; slices.Contains(last.Degraded, true) {
				t.Errorf("%s: still degraded: %+v", back, last)
			}
			checkBound(t, frames)
		}
		for i := range 5 {
			want := []string{"breaker", "degraded", "breaker", "recovered", "breaker", "degraded", "breaker", "recovered"}
			if got := kinds(e, instanceName(i)); !sameKinds(got, want) {
				t.Errorf("events of %s: %v, want %v", instanceName(i), got, want)
			}
		}
		if got, want := kinds(e, "Redis"), []string{"freeze", "thaw", "kill", "restart"}; !slices.Equal(got, want) {
			t.Errorf("the log on Redis: %v, want %v", got, want)
		}
	})
}

// sameKinds compares events whose two of one change may come in either order.
func sameKinds(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := 0; i < len(got); i += 2 {
		a, b := slices.Sorted(slices.Values(got[i:i+2])), slices.Sorted(slices.Values(want[i:i+2]))
		if !slices.Equal(a, b) {
			return false
		}
	}
	return true
}

func TestOneInstanceCutOffAlone(t *testing.T) {
	play(t, small, func(t *testing.T, e *engine, _ *redistest.Mini) {
		pass(e, 3*time.Second)
		if err := e.cut(1, true); err != nil {
			t.Fatal(err)
		}
		pass(e, 2*time.Second)
		frames := pass(e, 5*time.Second)
		last := frames[len(frames)-1]
		if want := []bool{false, true, false, false, false}; !slices.Equal(last.Degraded, want) || !slices.Equal(last.Cut, want) {
			t.Errorf("degraded %v, cut %v; want the second alone", last.Degraded, last.Cut)
		}
		near(t, "admitted by the one that is cut off", total(frames, func(f Frame) int { return f.Allowed[1] }), 200, 10)
		if err := e.cut(1, false); err != nil {
			t.Fatal(err)
		}
		frames = pass(e, 3*time.Second)
		if last := frames[len(frames)-1]; slices.Contains(last.Degraded, true) || slices.Contains(last.Cut, true) {
			t.Errorf("degraded %v, cut %v after it was mended", last.Degraded, last.Cut)
		}
		if err := e.cut(5, true); err == nil || err.Error() != "there is no instance 6" {
			t.Errorf("cutting a sixth of five: %v", err)
		}
	})
}

// A server that loses its data may give its burst again, and the bound says so.
func TestLostDataIsInTheBound(t *testing.T) {
	play(t, small, func(t *testing.T, e *engine, _ *redistest.Mini) {
		pass(e, 3*time.Second)
		if err := e.do(restartEmpty); err != nil {
			t.Fatal(err)
		}
		frames := pass(e, 3*time.Second)
		if w := frames[len(frames)-1].Worst[1]; w.Bound != 600 {
			t.Errorf("the bound of a second is %d, want two bursts and the rate", w.Bound)
		}
		checkBound(t, frames)
	})
}

func TestActionsThatMakeNoSenseSayWhy(t *testing.T) {
	play(t, small, func(t *testing.T, e *engine, _ *redistest.Mini) {
		for _, c := range []struct {
			do   action
			want string
		}{
			{thaw, "Redis is not frozen."},
			{failOver, "-redis sentinel"},
			{"dance", `no action "dance"`},
			{kill, ""},
			{kill, "Redis is killed."},
			{freeze, "Redis is killed."},
			{restartEmpty, ""},
			{freeze, ""},
			{freeze, "Redis is frozen."},
			{restart, ""},
		} {
			err := e.do(c.do)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", c.do, err, c.want)
			}
		}
	})
}
