package hybrid_test

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// rule is a rule named like its pattern.
func rule(key string, limit hybrid.Limit) hybrid.Rule {
	return hybrid.Rule{Name: key, Key: key, Limit: limit}
}

func set(rules ...hybrid.Rule) hybrid.RuleSet { return hybrid.RuleSet{Rules: rules} }

func TestRulesGiveKeysTheirLimits(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow, named, hybrid.WithRules(set(
			rule("user:9", hybrid.PerHour(3)), rule("user:*", hybrid.PerHour(5)),
			rule("free:*", hybrid.Unlimited), rule("gone", hybrid.Blocked), rule("large", hybrid.PerHour(500)))))
		want(t, "of user:1", drain(t, lim, "user:1"), 5)
		want(t, "of user:2", drain(t, lim, "user:2"), 5)
		want(t, "of user:9", drain(t, lim, "user:9"), 3)
		want(t, "of another", drain(t, lim, "ip:1"), 10)
		want(t, "of free", allowN(t, lim, "free:1", 1000), ruled[hybrid.Unlimited])
		want(t, "of gone", allowN(t, lim, "gone", 1), ruled[hybrid.Blocked])
		want(t, "of large, above the limiter's own burst", allowN(t, lim, "large", 400).Remaining, 100)
		if _, err := lim.AllowN(t.Context(), "user:3", 6); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("six of five: %v", err)
		}
		if _, err := lim.AllowN(t.Context(), "ip:2", 11); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("eleven of ten: %v", err)
		}
		name, ok := lim.RuleFor("user:7")
		want(t, "rule", name, rule("user:*", hybrid.PerHour(5)))
		want(t, "a rule applies", ok, true)
		if got, ok := lim.RuleFor("ip:1"); ok || got != (hybrid.Rule{}) {
			t.Errorf("rule of a key without: %+v, %v", got, ok)
		}
	})
}

// The rules change for all keys in the same instant, for those that are known
// too: tokens stay, as with SetLimit.
func TestSetRulesAppliesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow, named, hybrid.WithRules(set(rule("a", hybrid.PerHour(6)), rule("b", hybrid.PerHour(6)), rule("c", hybrid.Blocked))))
		for _, key := range []string{"a", "b", "c", "d"} {
			allowN(t, lim, key, 1)
		}
		next := set(rule("a", hybrid.PerHour(3)), rule("c", hybrid.PerHour(2)), rule("d", hybrid.PerHour(4)))
		want(t, "error", lim.SetRules(next), nil)
		next.Rules[0].Limit = hybrid.Blocked // the limiter has its own copy
		if got := lim.Rules(); !reflect.DeepEqual(got, set(rule("a", hybrid.PerHour(3)), rule("c", hybrid.PerHour(2)), rule("d", hybrid.PerHour(4)))) {
			t.Errorf("Rules() = %+v", got)
		}
		want(t, "a: five left, three fit", drain(t, lim, "a"), 3)
		want(t, "c: no longer blocked", drain(t, lim, "c"), 2)
		want(t, "d: nine left, four fit", drain(t, lim, "d"), 4)
		// Nobody else says anything of b, and a higher limit waits for that: one lease.
		want(t, "b: five left", drain(t, lim, "b"), 5)
		time.Sleep(25 * time.Second)
		want(t, "b has the limiter's own limit", allowN(t, lim, "b", 0).Limit, slow)
	})
}

// A higher version has raised limits apply at once, on every instance that is told
// or asks.
func TestRulesWithAVersionRaiseAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		options := []hybrid.Option{named, hybrid.WithRules(set(rule("k", hybrid.PerHour(2))))}
		one, two := start(t, r, slow, options...), start(t, r, slow, options...)
		allow(t, one)
		allow(t, two)
		raised := set(rule("k", hybrid.PerHour(100)))
		raised.Version = 7
		want(t, "error", one.SetRules(raised), nil)
		allow(t, one)
		want(t, "limit here", allow(t, one).Limit, hybrid.PerHour(100))
		allow(t, two)
		want(t, "limit there", allow(t, two).Limit, hybrid.Per(1, 36*time.Second).WithBurst(100)) // in lowest terms
	})
}

// Wrong rules change nothing, not even what is right about them.
func TestWrongRulesLeaveTheOldOnes(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		old := set(rule("k", hybrid.PerHour(5)))
		lim := start(t, r, slow, named, hybrid.WithLocalShare(0.5), hybrid.WithRules(old))
		allow(t, lim)
		for what, wrong := range map[string]hybrid.RuleSet{
			"no limit":                   set(rule("k", hybrid.PerHour(2)), hybrid.Rule{Name: "x", Key: "x"}),
			"too small for the share":    set(rule("k", hybrid.PerHour(2)), rule("x", hybrid.PerHour(1))),
			"a rule that never applies":  set(rule("*", hybrid.PerHour(2)), rule("x", hybrid.PerHour(3))),
			"a version out of its range": {Version: 1 << 60, Rules: []hybrid.Rule{rule("k", hybrid.PerHour(2))}},
		} {
			var e *hybrid.RuleError
			if err := lim.SetRules(wrong); !errors.As(err, &e) {
				t.Errorf("%s: %v", what, err)
			}
			if got := lim.Rules(); !reflect.DeepEqual(got, old) {
				t.Errorf("%s: the rules are %+v", what, got)
			}
			want(t, what+": limit", allowN(t, lim, "k", 0).Limit, hybrid.PerHour(5))
			want(t, what+": limit of x", allowN(t, lim, "x", 0).Limit, slow)
		}
		rdb, _ := unreachable(t)
		_, err := hybrid.New(rdb, slow, hybrid.WithRules(set(hybrid.Rule{Name: "x", Key: "x"})))
		var e *hybrid.RuleError
		if !errors.As(err, &e) || e.Rule != "x" || e.Field != "limit" {
			t.Errorf("New: %v", err)
		}
	})
}

func TestRulesNeedTheirOption(t *testing.T) {
	rdb, _ := unreachable(t)
	_, err := hybrid.New(rdb, slow, hybrid.WithRules(set()), hybrid.WithLimitByKey(func(string) hybrid.Limit { return slow }))
	var wrong *hybrid.ConfigError
	if !errors.As(err, &wrong) || wrong.Field != "WithRules" {
		t.Errorf("rules and a function: %v", err)
	}
	without := startOn(t, rdb, slow, named)
	if err := without.SetRules(set()); !errors.As(err, &wrong) || wrong.Field != "SetRules" {
		t.Errorf("SetRules without WithRules: %v", err)
	}
	want(t, "rules", len(without.Rules().Rules), 0)
	with := startOn(t, rdb, slow, named, hybrid.WithRules(set()))
	want(t, "error", with.SetRules(set(rule("k", slow))), nil)
	_ = with.Close()
	want(t, "after Close", with.SetRules(set()), hybrid.ErrClosed)
}

// SetLimit is for the keys that no rule names.
func TestSetLimitLeavesNamedKeysAlone(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow, named, hybrid.WithRules(set(rule("k", hybrid.PerHour(5)))))
		allowN(t, lim, "k", 1)
		allowN(t, lim, "other", 1)
		want(t, "error", lim.SetLimit(hybrid.PerHour(2)), nil)
		want(t, "of k", drain(t, lim, "k"), 4)
		want(t, "of another", drain(t, lim, "other"), 2)
		want(t, "of a new one", drain(t, lim, "new"), 2)
	})
}

// Keys beyond those that are remembered have the limits of the rules too, and so
// does an outage: a part of them.
func TestRulesBeyondMaxKeysAndInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow, named, hybrid.WithExpectedInstances(2), hybrid.WithRules(set(rule("k", hybrid.PerHour(4)), rule("gone", hybrid.Blocked))))
		r.Kill()
		trip(t, lim)
		want(t, "half of k", drain(t, lim, "k"), 2)
		want(t, "half of another", drain(t, lim, "other"), 5)
		want(t, "gone", allowN(t, lim, "gone", 1), ruled[hybrid.Blocked])
	})
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow, named, hybrid.WithMaxKeys(1), hybrid.WithRules(set(rule("k", hybrid.PerHour(4)))))
		r.Freeze()
		var all sync.WaitGroup
		all.Go(func() { _, _ = lim.Wait(t.Context(), "held") })
		settle()
		time.Sleep(10 * time.Millisecond)
		r.Thaw()
		r.Delay(10 * time.Millisecond)
		all.Go(func() { _, _ = lim.WaitN(t.Context(), "held", 10) })
		settle()
		want(t, "limit beyond", allowN(t, lim, "k", 1).Limit, hybrid.PerHour(4))
		want(t, "untracked", lim.Stats().Untracked > 0, true)
		_ = lim.Close()
		all.Wait()
	})
}

// Under load each decision is by the old set or by the new one as a whole, and by
// the new one from the moment that SetRules has returned.
func TestSetRulesUnderLoad(t *testing.T) {
	rdb, _ := unreachable(t)
	sets := []hybrid.RuleSet{
		set(rule("a", hybrid.Blocked), rule("b", hybrid.Blocked), rule("c*", hybrid.Unlimited)),
		set(rule("c*", hybrid.Blocked), rule("b", hybrid.Unlimited), rule("a", hybrid.Unlimited)),
	}
	lim := startOn(t, rdb, slow, named, hybrid.WithRules(sets[0]))
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "cc"} {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if res, err := lim.Allow(t.Context(), key); err != nil || res.Source != hybrid.SourceRule {
					t.Errorf("%+v, %v", res, err)
					return
				}
			}
		})
	}
	for i := range runs(200, 5000) {
		now := sets[(i+1)%2]
		if err := lim.SetRules(now); err != nil {
			t.Error(err)
		}
		for _, key := range []string{"a", "b", "c"} {
			rule, _ := lim.RuleFor(key)
			want(t, "limit of "+key, allowN(t, lim, key, 1).Limit, rule.Limit)
		}
	}
	close(stop)
	all.Wait()
}
