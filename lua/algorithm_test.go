package lua_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// Whatever took the time to live off a key, the next message sets it, also one that is
// refused: no key stays for ever.
func TestTimeToLiveIsMendedOnSight(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				l := perWindow(3, time.Second)
				w.ask(algo, ask(l, 1, 3))
				w.persist(w.key)
				if ttl := w.ttl(w.key); ttl != -1 {
					w.Fatalf("the time to live is %d", ttl)
				}
				if a := w.ask(algo, ask(l, 1, 1)); a.granted[0] != 0 {
					w.Fatalf("granted %v", a.granted)
				}
				if ttl := w.ttl(w.key); ttl < 1000 || ttl > 2200 {
					w.Fatalf("the time to live is %d ms", ttl)
				}
			})
		})
	}
}

// What a key was refused costs nothing: it is free when it would have been without.
func TestRefusalsAreNotCounted(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				l := perWindow(10, time.Second)
				w.ask(algo, ask(l, 1, 10))
				for range 50 {
					w.pass(10 * time.Millisecond)
					w.ask(algo, ask(l, 7, 3))
				}
				w.pass(610 * time.Millisecond) // 1.11 s: the last counter has left
				if a := w.ask(algo, ask(l, 1, 11)); a.granted[0] != 10 {
					w.Fatalf("%d were granted, want 10", a.granted[0])
				}
			})
		})
	}
}

// The state of a newer format is left alone.
func TestNewerFormatsOfAllAlgorithms(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				l := perWindow(10, time.Minute)
				w.ask(algo, ask(l, 1, 1))
				if algo == lua.SlidingLog {
					members := w.client().ZRange(w.Context(), w.key, -1, -1).Val()
					w.client().ZRem(w.Context(), w.key, members[0])
					w.client().ZAdd(w.Context(), w.key, infinite("2"+members[0][1:]))
				} else {
					w.store("l", "2 x")
				}
				w.undisturbed(func() {
					if a := w.tell(algo, ask(l, 1, 1)); a.status != newer {
						w.Fatalf("status %d", a.status)
					}
					for _, op := range []*lua.Script{algo.Peek, algo.Reset} {
						if a := w.look(algo, op, l); a.status != newer {
							w.Fatalf("%s: status %d", op.Name(), a.status)
						}
					}
				})
			})
		})
	}
}

// Instances that disagree apply one limit, the one of the higher version, and what was
// counted goes on counting.
func TestAllAlgorithmsApplyOneLimit(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				old, high := perWindow(10, time.Minute), perWindow(20, time.Minute).newer()
				if a := w.ask(algo, ask(old, 1, 4)); a.status != ok || a.tokens != 6*unit {
					w.Fatalf("%+v", a)
				}
				// A queue has room for 6 and grows to its rate, windows have counted 4.
				left := int64(16)
				if algo == lua.LeakyBucket {
					left = 6
				}
				if a := w.ask(algo, ask(high, 1, 1)); a.status != ok || a.tokens != (left-1)*unit {
					w.Fatalf("%+v", a)
				}
				a := w.ask(algo, ask(old, 1, 1))
				if a.status != other || a.applies != high || a.tokens != (left-2)*unit || a.granted[0] != 1 {
					w.Fatalf("%+v", a)
				}
				if p := w.look(algo, algo.Peek, old); p.status != other || p.applies != high || p.tokens != (left-2)*unit {
					w.Fatalf("%+v", p)
				}
			})
		})
	}
}

// A window of another length keeps what was counted, as of now at the latest.
func TestWindowsOfAnotherLengthKeepTheCount(t *testing.T) {
	for name, algo := range others {
		if !algo.Timed {
			continue
		}
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				w.ask(algo, ask(perWindow(10, time.Minute), 1, 10))
				w.pass(20 * time.Second)
				// The lower rate wins, whatever the length.
				long := perWindow(15, 3*time.Minute)
				if a := w.ask(algo, ask(long, 1, 9)); a.status != ok || a.granted[0] != 5 {
					w.Fatalf("%+v", a)
				}
				w.pass(159 * time.Second) // less than 3 minutes after the first
				if a := w.ask(algo, ask(long, 1, 1)); a.granted[0] != 0 {
					w.Fatalf("%+v", a)
				}
				w.pass(58 * time.Second) // more than 3.3 after the last
				w.pass(time.Second)
				if a := w.ask(algo, ask(long, 1, 15)); a.granted[0] != 15 && algo != lua.RollingWindow {
					w.Fatalf("%+v", a)
				}
			})
		})
	}
}

// After a step back of the clock nobody is locked out for longer than a period from
// then, nor given more than there was.
func TestClockStepsBackUnderAllAlgorithms(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				l := perWindow(10, time.Minute)
				w.ask(algo, ask(l, 1, 10))
				w.pass(-24 * time.Hour)
				if a := w.ask(algo, ask(l, 1, 1)); a.granted[0] != 0 || a.tokens != 0 {
					w.Fatalf("%+v right after the step", a)
				}
				w.pass(66 * time.Second)
				if a := w.ask(algo, ask(l, 1, 11)); a.granted[0] != 10 {
					w.Fatalf("%+v a period later", a)
				}
			})
		})
	}
}

// A key that was counted and is gone was lost: it goes on where it was last seen.
func TestLostKeysOfAllAlgorithms(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				m := ask(perWindow(10, time.Minute), 1, 5)
				m.known, m.seen = true, 3*unit+5
				if a := w.ask(algo, m); !a.lost || a.granted[0] != 3 {
					w.Fatalf("%+v", a)
				}
				if a := w.ask(algo, m); a.lost || a.granted[0] != 0 {
					w.Fatalf("%+v", a)
				}
			})
		})
	}
}

// While some instances cannot reach the server, the others have their part.
func TestPartsOfAllAlgorithms(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				m := ask(perWindow(10, time.Minute), 1, 10)
				m.live, m.peak = 1, 4
				if a := w.ask(algo, m); a.granted[0] != 2 {
					w.Fatalf("%+v, want 2 of 10 for a quarter of the instances", a)
				}
			})
		})
	}
}

// Arguments that are none are refused and change nothing.
func TestAlgorithmsRefuseNonsense(t *testing.T) {
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, func(w *world) {
				good := ask(perWindow(10, time.Minute), 1, 1).args()
				for i := range good {
					bad := append([]any(nil), good...)
					bad[i] = "x"
					if i == 0 || i == 1 { // the format is not looked at, and an id is any text
						continue
					}
					if _, err := w.eval(algo.Acquire, w.key, bad); err == nil {
						w.Fatalf("argument %d may be x", i)
					}
				}
				for _, n := range []int{0, 1, 4, 7, 19, 20, 22, 23} {
					if _, err := w.eval(algo.Acquire, w.key, good[:n]); err == nil {
						w.Fatalf("%d arguments will do", n)
					}
				}
				if w.stored() != nil {
					w.Fatalf("something is stored")
				}
			})
		})
	}
}
