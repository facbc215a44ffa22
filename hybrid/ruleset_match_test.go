package hybrid_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/hybrid"
)

// withRules is a limiter with rules and without a Redis.
func withRules(t *testing.T, set hybrid.RuleSet) *hybrid.Limiter {
	t.Helper()
	rdb, _ := unreachable(t)
	return startOn(t, rdb, slow, named, hybrid.WithRules(set))
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"user:1", []string{"user:1"}, []string{"user:12", "user:", "xuser:1", "User:1"}},
		{"*", []string{"a", "a:b", "*", "\xff", " "}, nil},
		{"user:*", []string{"user:", "user:1", "user:1:2", "user:*"}, []string{"user", "xuser:1"}},
		{"*:search", []string{":search", "user:1:search", ":search:search"}, []string{"search", "user:search:1"}},
		{"user:*:search", []string{"user::search", "user:1:2:search"}, []string{"user:search", "user:1:searching"}},
		{"a*a", []string{"aa", "aba", "aaa"}, []string{"a", "ab", "ba"}},
		{"*ab*ba*", []string{"abba", "xabxbax"}, []string{"aba", "baab"}},
		{"**", []string{"x"}, nil},
		{"a**b", []string{"ab", "axb"}, []string{"a"}},
		{`a\*b`, []string{"a*b"}, []string{"axb", `a\*b`, "ab"}},
		{`\\*`, []string{`\`, `\x`}, []string{"x"}},
		{"ü*", []string{"ü", "üx"}, []string{"u"}},
	} {
		lim := withRules(t, hybrid.RuleSet{Rules: []hybrid.Rule{{Name: "r", Key: c.pattern, Limit: hybrid.Blocked}}})
		for _, key := range c.yes {
			_, ok := lim.RuleFor(key)
			want(t, c.pattern+" matches "+key, ok, true)
		}
		for _, key := range c.no {
			_, ok := lim.RuleFor(key)
			want(t, c.pattern+" matches "+key, ok, false)
		}
	}
}

// A pattern means the same as a regular expression, and a rule is refused exactly
// if an earlier one leaves it nothing.
func TestPatternsAgreeWithRegularExpressions(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	text := func(alphabet string, most int) string {
		b := make([]byte, rnd.IntN(most+1))
		for i := range b {
			b[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		return string(b)
	}
	all := []string{}
	for n := range 5 { // all keys of up to four letters
		level := []string{""}
		for range n {
			var next []string
			for _, s := range level {
				next = append(next, s+"a", s+"b", s+"c")
			}
			level = next
		}
		all = append(all, level...)
	}
	lim := withRules(t, hybrid.RuleSet{})
	covered := 0
	for range runs(300, 10_000) {
		first, second := text("ab**", 4), text("ab**", 4)
		if first == "" || second == "" {
			continue
		}
		set := hybrid.RuleSet{Rules: []hybrid.Rule{{Name: "1", Key: first, Limit: hybrid.Blocked}, {Name: "2", Key: second, Limit: hybrid.Unlimited}}}
		expr := func(p string) *regexp.Regexp {
			return regexp.MustCompile("^" + strings.ReplaceAll(p, "*", ".*") + "$")
		}
		one, two := expr(first), expr(second)
		left := false // for the second
		for _, key := range all {
			left = left || two.MatchString(key) && !one.MatchString(key)
		}
		err := lim.SetRules(set)
		if (err == nil) != left {
			t.Fatalf("seed %d: %q before %q: %v, want an error: %v", seed, first, second, err, !left)
		}
		if err != nil {
			covered++
			continue
		}
		for _, key := range all {
			name := map[bool]string{true: "1"}[one.MatchString(key)]
			if name == "" && two.MatchString(key) {
				name = "2"
			}
			if r, ok := lim.RuleFor(key); ok != (name != "") || r.Name != name {
				t.Fatalf("seed %d: %q of %q and %q has the rule %+v, want %q", seed, key, first, second, r, name)
			}
		}
	}
	if covered < 10 {
		t.Errorf("only %d pairs covered one another", covered)
	}
}

// Thousands of plain keys are found by their text, and the order still counts.
func TestManyPlainKeysKeepTheirOrder(t *testing.T) {
	var set hybrid.RuleSet
	add := func(name, key string, n int) {
		set.Rules = append(set.Rules, hybrid.Rule{Name: name, Key: key, Limit: hybrid.PerHour(n)})
	}
	add("first", "tenant:7", 1)
	add("sevens", "tenant:7*", 2)
	for i := range 5000 {
		add(fmt.Sprint("plain", i), fmt.Sprint("tenant:8:", i), 3)
	}
	add("rest", "*", 4)
	if err := set.Validate(); err != nil {
		t.Fatal(err)
	}
	lim := withRules(t, set)
	for key, n := range map[string]int{"tenant:7": 1, "tenant:77": 2, set.Rules[4000].Key: 3, "other": 4} {
		r, _ := lim.RuleFor(key)
		want(t, "rule of "+key[:min(len(key), 10)], r.Limit, hybrid.PerHour(n))
	}
	set.Rules = append(set.Rules[:1:1], append([]hybrid.Rule{{Name: "late", Key: "tenant:7", Limit: slow}}, set.Rules[1:]...)...)
	var wrong *hybrid.RuleError
	if err := set.Validate(); !errors.As(err, &wrong) || wrong.Number != 2 || wrong.Field != "key" {
		t.Errorf("a second rule for the same key: %v", err)
	}
}
