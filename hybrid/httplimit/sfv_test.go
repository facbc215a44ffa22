package httplimit_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func TestParseList(t *testing.T) {
	type item = httplimit.ListItem
	for _, c := range []struct {
		lines []string
		items []item
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{"", `"a";r=1`, " "}, []item{{Name: "a", Named: true, Params: map[string]string{"r": "1"}}}},
		{[]string{`"default";r=50;t=30`}, []item{{Name: "default", Named: true, Params: map[string]string{"r": "50", "t": "30"}}}},
		{[]string{`burst;q=100`}, []item{{Name: "burst", Named: true, Params: map[string]string{"q": "100"}}}},
		{[]string{`*a/b:c`}, []item{{Name: "*a/b:c", Named: true}}},
		{[]string{`"a\"b\\c"`}, []item{{Name: `a"b\c`, Named: true}}},
		{[]string{`"a";pk=:cHsdsRa894==:`}, []item{{Name: "a", Named: true, Params: map[string]string{"pk": ":cHsdsRa894==:"}}}},
		{[]string{`"a";  r=1;r=2`}, []item{{Name: "a", Named: true, Params: map[string]string{"r": "2"}}}},
		{[]string{`"a";x;y=?0;z="s,;"`}, []item{{Name: "a", Named: true, Params: map[string]string{"x": "?1", "y": "?0", "z": "s,;"}}}},
		{[]string{`10;w=1.5`}, []item{{Name: "10", Params: map[string]string{"w": "1.5"}}}},
		{
			[]string{"\"a\" ,\t\"b\"", "c"},
			[]item{{Name: "a", Named: true}, {Name: "b", Named: true}, {Name: "c", Named: true}},
		},
	} {
		items, err := httplimit.ParseList(c.lines...)
		if err != nil || len(items) != len(c.items) {
			t.Errorf("%q: %d items, %v; want %d", c.lines, len(items), err, len(c.items))
			continue
		}
		for i, got := range items {
			w := c.items[i]
			if got.Name != w.Name || got.Named != w.Named || !maps.Equal(got.Params, w.Params) {
				t.Errorf("%q: item %d is %+v, want %+v", c.lines, i, got, w)
			}
		}
	}
}

func TestMalformedListsAreRefused(t *testing.T) {
	for _, line := range []string{
		`"a`, `"a\`, `"a\b"`, "\"a\x7f\"", `"ä"`, `"a",`, `,"a"`, `"a" "b"`, `"a";`, `"a";R=1`, `"a";=1`, `"a";r=`,
		`"a";r=1;`, `"a";r=-`, `"a";r=1.`, `"a";r=1.2345`, `"a";r=1234567890123456`, `"a";r=:a`, `"a";r=?2`,
		`(a b);r=1`, `@1659578233`, `%"a"`, `"a" ;r=1`, "\x00", `"a";r=1 x`,
	} {
		if items, err := httplimit.ParseList(line); err == nil {
			t.Errorf("%q is read as %+v", line, items)
		}
	}
}

// What is quoted is read again as it was, up to what a string cannot hold; and an
// item that was read is read again from its text.
func FuzzList(f *testing.F) {
	for _, s := range []string{"", "100/s", `"`, `\`, `\"`, `a"b\c`, "1/1µs", "\x00\x7f", `"a";r=1,b;t=2`, `x";r=0;t=9,"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		items, err := httplimit.ParseList(httplimit.Quote(s) + ";r=1")
		if err != nil || len(items) != 1 {
			t.Fatalf("Quote(%q) is read as %+v, %v", s, items, err)
		}
		printable := strings.Map(func(r rune) rune {
			if r < 0x20 || r > 0x7e {
				return '?'
			}
			return r
		}, s)
		if items[0].Name != printable || items[0].Params["r"] != "1" {
			t.Fatalf("Quote(%q) is read as %+v", s, items[0])
		}
		items, err = httplimit.ParseList(s)
		if err != nil {
			return
		}
		for _, it := range items {
			again, err := httplimit.ParseList(it.Text)
			if err != nil || len(again) != 1 || again[0].Name != it.Name || !maps.Equal(again[0].Params, it.Params) {
				t.Fatalf("%q is read as %+v, %v; before as %+v", it.Text, again, err, it)
			}
		}
	})
}
