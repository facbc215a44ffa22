package hybrid_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/hybrid"
)

// mixed is a set with everything in it.
var mixed = hybrid.RuleSet{Version: 3, Rules: []hybrid.Rule{
	{Name: "staff", Key: "user:staff:*", Limit: hybrid.Unlimited},
	{Name: "search", Key: "*:search", Limit: hybrid.PerSecond(10).WithBurst(20)},
	{Name: "banned", Key: "ip:10.0.0 7", Limit: hybrid.Blocked},
	{Name: "star", Key: `"\*"`, Limit: hybrid.PerHour(7)},
}}

const mixedText = `version 3
staff user:staff:* unlimited
search *:search 10/s burst 20
banned "ip:10.0.0 7" blocked
star "\"\\*\"" 7/h
`

const mixedJSON = `{"version":3,"rules":[` +
	`{"name":"staff","key":"user:staff:*","limit":"unlimited"},` +
	`{"name":"search","key":"*:search","limit":"10/s burst 20"},` +
	`{"name":"banned","key":"ip:10.0.0 7","limit":"blocked"},` +
	`{"name":"star","key":"\"\\*\"","limit":"7/h"}]}`

func TestRulesAsTextAndJSON(t *testing.T) {
	want(t, "text", mixed.String(), mixedText)
	text, err := json.Marshal(mixed)
	want(t, "JSON", string(text), mixedJSON)
	want(t, "error", err, nil)
	for _, form := range []string{
		mixedText, mixedJSON, "\n " + mixedJSON + "\n",
		"# comment\n\n\t" + strings.ReplaceAll(strings.ReplaceAll(mixedText, "\n", "\r\n"), "search *", "search\t  *") + " # another",
	} {
		got, err := hybrid.ParseRules(form)
		if err != nil || !reflect.DeepEqual(got, mixed) {
			t.Errorf("ParseRules(%q) = %+v, %v", form, got, err)
		}
	}
	for _, empty := range []string{"", "\n# none\n", "{}", `{"rules":[]}`} {
		if got, err := hybrid.ParseRules(empty); err != nil || len(got.Rules) != 0 || got.Version != 0 {
			t.Errorf("ParseRules(%q) = %+v, %v; want no rules", empty, got, err)
		}
	}
	if got, err := hybrid.ParseRules("version version 5/s"); err != nil || got.Rules[0].Name != "version" {
		t.Errorf("a rule named version: %+v, %v", got, err)
	}
}

// Each error names the rule and the field, and none hides another.
func TestWrongRulesAreToldByRuleAndField(t *testing.T) {
	rules := func(rs ...hybrid.Rule) func() error {
		return hybrid.RuleSet{Rules: rs}.Validate
	}
	text := func(s string) func() error {
		return func() error {
			_, err := hybrid.ParseRules(s)
			return err
		}
	}
	five := hybrid.PerHour(5)
	ok := hybrid.Rule{Name: "ok", Key: "ok", Limit: five}
	for _, c := range []struct {
		what string
		err  func() error
		want string // of each error: number/rule/field, and a part of the reason
	}{
		{"no name", rules(ok, hybrid.Rule{Key: "k", Limit: five}), "2//name missing"},
		{"a name with a space", rules(hybrid.Rule{Name: "a b", Key: "k", Limit: five}), "1/a b/name space"},
		{"a name like a comment", rules(hybrid.Rule{Name: "#a", Key: "k", Limit: five}), "1/#a/name #"},
		{"a name again", rules(ok, hybrid.Rule{Name: "ok", Key: "k", Limit: five}), "2/ok/name rule 1"},
		{"no key", rules(ok, hybrid.Rule{Name: "a", Limit: five}), "2/a/key matches every key"},
		{"a wrong escape", rules(hybrid.Rule{Name: "a", Key: `a\b`, Limit: five}), "1/a/key backslash"},
		{"an escape at the end", rules(hybrid.Rule{Name: "a", Key: `a\`, Limit: five}), "1/a/key backslash"},
		{"after all keys are taken", rules(hybrid.Rule{Name: "all", Key: "*", Limit: five}, ok), "2/ok/key rule 1 (all)"},
		{"no limit", rules(hybrid.Rule{Name: "a", Key: "k"}), "1/a/limit no limit"},
		{"a limit of nothing", rules(ok, hybrid.Rule{Name: "a", Key: "k", Limit: hybrid.PerSecond(0)}), "2/a/limit positive"},
		{"a version below 0", hybrid.RuleSet{Version: -1}.Validate, "0//version 2^53"},
		{"a version too large", hybrid.RuleSet{Version: 1 << 53}.Validate, "0//version 2^53"},
		{"all of it", rules(hybrid.Rule{Name: "a", Limit: five}, ok, hybrid.Rule{Name: "a", Key: "b"}), "1/a/key missing|3/a/name rule 1|3/a/limit no limit"},
		{"text: a limit", text("a k 5/x\nb l five"), "1/a/limit period|2/b/limit no /"},
		{"text: a line cut short", text("ok ok 5/s\na"), "2/a/limit COUNT/PERIOD"},
		{"text: a version", text("version x\nversion 2\nversion 3"), "0//version no integer|0//version second"},
		{"text: a quote", text(`a "k 5/s`), "1/a/key quoted"},
		{"text: a shadow", text("a * 5/s\nb k 5/s"), "2/b/key rule 1"},
		{"JSON: a limit", text(`{"rules":[{"name":"a","key":"k","limit":"5"},{"name":"b","key":"l","limit":"5/q"}]}`), "1/a/limit no /|2/b/limit period"},
		{"JSON: a number", text(`{"rules":[{"name":"ok","key":"ok","limit":"5/s"},{"name":"b","key":"l","limit":5}]}`), "2/b/limit number"},
		{"JSON: a misspelt field", text(`{"rules":[{"name":"a","key":"k","limits":"5/s"}]}`), `1/a/ unknown field "limits"`},
		{"JSON: a misspelt list", text(`{"rule":[]}`), `0// unknown field "rule"`},
		{"JSON: a version", text(`{"version":"1"}`), "0//version string"},
		{"JSON: cut short", text(`{"rules":[`), "0// no JSON"},
		{"JSON: and more", text(`{"rules":[]} {}`), "0// no JSON"},
	} {
		t.Run(c.what, func(t *testing.T) {
			err := c.err()
			if err == nil {
				t.Fatal("no error")
			}
			var all []error
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				all = joined.Unwrap()
			} else {
				all = []error{err}
			}
			wants := strings.Split(c.want, "|")
			want(t, "errors", len(all), len(wants))
			for i, err := range all {
				var e *hybrid.RuleError
				if !errors.As(err, &e) {
					t.Fatalf("%v is no RuleError", err)
				}
				id, part := splitWant(wants[min(i, len(wants)-1)])
				got := strings.Join([]string{string(rune('0' + e.Number)), e.Rule, e.Field}, "/")
				want(t, "rule and field", got, id)
				if !strings.Contains(e.Reason, part) || !strings.Contains(err.Error(), e.Rule) || !strings.Contains(err.Error(), e.Field) {
					t.Errorf("%q, want it to name rule and field and to say %q", err, part)
				}
			}
		})
	}
}

// splitWant cuts at the first space behind the second slash.
func splitWant(s string) (id, part string) {
	second := strings.Index(s, "/") + 1
	second += strings.Index(s[second:], "/")
	i := second + strings.Index(s[second:], " ")
	return s[:i], s[i+1:]
}

// FuzzParseRules: what is read is valid and comes back from both of its forms.
func FuzzParseRules(f *testing.F) {
	for _, s := range []string{mixedText, mixedJSON, "a * 1/s", `a "\x00" 5/3s`, "version 9007199254740991"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := hybrid.ParseRules(text)
		if err != nil {
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		if again, err := hybrid.ParseRules(s.String()); err != nil || len(s.Rules) > 0 && !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v as text is %q, which is %+v, %v", s, s.String(), again, err)
		}
	})
}
