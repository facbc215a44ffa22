package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// simulate runs the program and expects that it succeeds.
func simulate(t *testing.T, args ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	if status := run(args, &out, &complaints); status != 0 {
		t.Fatalf("%q ends with status %d: %s", args, status, &complaints)
	}
	return out.String()
}

func TestTheSameSeedPrintsTheSame(t *testing.T) {
	args := []string{"-duration", "3s", "-crash", "1s", "-skew", "zipf", "-seed", "42"}
	one := simulate(t, args...)
	if again := simulate(t, args...); again != one {
		t.Errorf("the same flags print\n%s\nand\n%s", one, again)
	}
	if other := simulate(t, append(args, "-seed", "43")...); other == one {
		t.Error("another seed prints the same")
	}
}

// The table says the bound that applies.
func TestTheBoundIsStated(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"healthy", nil, []string{"the bound is burst + rate = 2000\n"}},
		{"another burst", []string{"-burst", "300"}, []string{"burst 300", "the bound is burst + rate = 1300\n"}},
		{
			"outage",
			[]string{"-outage", "1s"},
			[]string{"Redis gone for 1s", "burst + rate = 2000, and with an outage 4000\n", "breaker opened", "degraded"},
		},
		{"share", []string{"-share", "0.01", "-skew", "90/10"}, []string{"local share 0.01", "refused prefilter"}},
		{"moving", []string{"-shift", "500ms", "-crash", "1s"}, []string{"moves every 500ms", "a crash every 1s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := simulate(t, append([]string{"-duration", "4s"}, c.args...)...)
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

func TestJSONIsOneObject(t *testing.T) {
	for _, args := range [][]string{
		{"-duration", "3s"},
		{"-duration", "3s", "-outage", "500ms", "-crash", "700ms", "-shift", "1s", "-skew", "1.5"},
		{"-duration", "50ms", "-instances", "1", "-limit", "1/h", "-load", "0.001"}, // nobody asks
	} {
		d := json.NewDecoder(strings.NewReader(simulate(t, append([]string{"-json"}, args...)...)))
		var got map[string]any
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if d.More() {
			t.Error("there is more than one object")
		}
		for _, field := range []string{"use", "worst_window_excess", "burst", "calls_per_second", "fairness"} {
			if x, ok := got[field].(float64); !ok || math.IsNaN(x) {
				t.Errorf("%q: %s is %v, want a number", args, field, got[field])
			}
		}
		for _, field := range []string{"bound", "decisions", "admitted_per_instance", "admitted_per_100ms", "scenario", "script_calls", "calls_per_decision"} {
			if _, ok := got[field]; !ok {
				t.Errorf("%q: no %s", args, field)
			}
		}
	}
}

// Two figures by hand: all of a burst at once, and half of the demand on one.
func TestJSONFigures(t *testing.T) {
	var got result
	args := []string{"-json", "-instances", "1", "-limit", "1000/s", "-burst", "500", "-load", "10", "-duration", "5s"}
	if err := json.Unmarshal([]byte(simulate(t, args...)), &got); err != nil {
		t.Fatal(err)
	}
	switch {
	case got.Burst != 500 || got.Bound != 500:
		t.Errorf("burst %d, bound %v; want 500", got.Burst, got.Bound)
	case got.WorstWindowExcess > 500 || got.WorstWindowExcess < 400:
		t.Errorf("the worst second exceeds the rate by %v, want nearly the burst", got.WorstWindowExcess)
	case got.WorstWindowExcess != float64(got.WorstWindow)-1000:
		t.Errorf("%v is not %d less 1000", got.WorstWindowExcess, got.WorstWindow)
	case got.Fairness != 1:
		t.Errorf("one instance is treated unfairly: %v", got.Fairness)
	case got.Reference < 5450 || got.Reference > 5500 || got.Use < 0.98:
		t.Errorf("use %v of %d", got.Use, got.Reference)
	case got.Scenario.Limit != "1000/s burst 500" || got.Scenario.Load != 10 || got.Scenario.Duration != "5s":
		t.Errorf("the flags come back as %+v", got.Scenario)
	}
	sum := int64(0)
	for _, n := range got.Per100ms {
		sum += n
	}
	if len(got.Per100ms) != 50 || sum != got.Admitted || got.PerInstance[0] != got.Admitted {
		t.Errorf("%d bins with %d of %d", len(got.Per100ms), sum, got.Admitted)
	}
}

func TestCSVHasALinePerTenth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.csv")
	args := []string{"-limit", "300/s", "-duration", "2s", "-csv", file}
	var got result
	if err := json.Unmarshal([]byte(simulate(t, append(args, "-json")...)), &got); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "time_s,admitted,limit\n"
	for i, n := range got.Per100ms {
		want += fmt.Sprintf("%d.%d,%d,30\n", i/10, i%10, n)
	}
	if string(text) != want {
		t.Errorf("the file holds\n%s\nwant\n%s", text, want)
	}
	simulate(t, append(args, "-seed", "2")...) // it is replaced
	if again, err := os.ReadFile(file); err != nil || bytes.Equal(again, text) || bytes.Count(again, []byte("\n")) != 21 {
		t.Errorf("another run leaves %v\n%s", err, again)
	}
}

func TestAFileThatCannotBeWritten(t *testing.T) {
	var out, complaints bytes.Buffer
	status := run([]string{"-duration", "200ms", "-csv", filepath.Join(t.TempDir(), "none", "out.csv")}, &out, &complaints)
	if status != 1 || out.Len() > 0 || !strings.Contains(complaints.String(), "-csv: ") {
		t.Errorf("status %d, output %q, complaint %q", status, &out, &complaints)
	}
}

// The fleet that no test machine has.
func TestAThousandInstances(t *testing.T) {
	var got result
	out := simulate(t, "-json", "-instances", "1000", "-limit", "500000/s", "-load", "2", "-duration", "200ms")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.PerInstance) != 1000 || got.Offered < 198_000 || got.Offered > 202_000 {
		t.Errorf("%d instances and %d requests, want 1000 and about 200,000", len(got.PerInstance), got.Offered)
	}
	if got.WorstWindowExcess > got.Bound {
		t.Errorf("%v above the rate, the bound is %v", got.WorstWindowExcess, got.Bound)
	}
}

func TestMistakesEndWithTwo(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // in the complaint
	}{
		{[]string{"-instances", "0"}, "-instances"},
		{[]string{"-instances", "many"}, "-instances"},
		{[]string{"-instances", "1000000"}, "from 1 to 100000"},
		{[]string{"-limit", "1000"}, "-limit"},
		{[]string{"-limit", "0/s"}, "-limit"},
		{[]string{"-limit", "unlimited"}, "-limit"},
		{[]string{"-limit", "5/fortnight"}, "-limit"},
		{[]string{"-burst", "-1"}, "-burst"},
		{[]string{"-burst", "1.5"}, "-burst"},
		{[]string{"-load", "0"}, "-load"},
		{[]string{"-load", "NaN"}, "-load"},
		{[]string{"-load", "+Inf"}, "-load"},
		{[]string{"-skew", "odd"}, "90/10"},
		{[]string{"-skew", "-2"}, "-skew"},
		{[]string{"-shift", "soon"}, "-shift"},
		{[]string{"-shift", "-1s"}, "-shift"},
		{[]string{"-shift", "1s", "-instances", "1"}, "two -instances"},
		{[]string{"-rtt", "2"}, "such as 200ms"},
		{[]string{"-rtt", "-2ms"}, "-rtt"},
		{[]string{"-rtt", "10s"}, "WithRemoteTimeout"},
		{[]string{"-horizon", "0"}, "-horizon"},
		{[]string{"-horizon", "1ms"}, "WithLeaseHorizon"},
		{[]string{"-horizon", "1h"}, "WithLeaseHorizon"},
		{[]string{"-share", "0"}, "-share"},
		{[]string{"-share", "1.1"}, "-share"},
		{[]string{"-share", "0.1", "-limit", "5/s"}, "WithLocalShare"},
		{[]string{"-crash", "x"}, "-crash"},
		{[]string{"-crash", "1ns"}, "10,000 crashes"},
		{[]string{"-outage", "-1s"}, "-outage"},
		{[]string{"-outage", "19s"}, "does not end"},
		{[]string{"-duration", "0"}, "-duration"},
		{[]string{"-duration", "20"}, "-duration"},
		{[]string{"-duration", "10000h", "-limit", "1000000/s"}, "requests"},
		{[]string{"-seed", "-1"}, "-seed"},
		{[]string{"-json=perhaps"}, "json"},
		{[]string{"-csv"}, "csv"},
		{[]string{"-nonsense"}, "nonsense"},
		{[]string{"20"}, `"20" is not a flag`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var out, complaints bytes.Buffer
			if status := run(c.args, &out, &complaints); status != 2 {
				t.Errorf("status %d, want 2", status)
			}
			text := complaints.String()
			if out.Len() > 0 || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 2 {
				t.Errorf("output %q, complaint %q; want a line with %q and one about -h", &out, text, c.want)
			}
		})
	}
}

func TestHelpNamesEachFlag(t *testing.T) {
	text := simulate(t, "-h")
	for flag, value := range map[string]string{
		"instances": "20", "limit": "1000/s", "burst": "0", "load": "2", "skew": "even", "shift": "0", "rtt": "2ms",
		"horizon": "200ms", "share": "1", "crash": "0", "outage": "0", "duration": "20s", "seed": "1",
	} {
		_, after, found := strings.Cut(text, "\n  -"+flag+" ")
		if !found {
			t.Errorf("no -%s in\n%s", flag, text)
			continue
		}
		if next, _, _ := strings.Cut(after, "\n  -"); !strings.Contains(next, "("+value) {
			t.Errorf("the default %s is not said of -%s: %s", value, flag, next)
		}
	}
	for _, flag := range []string{"-json", "-csv FILE"} {
		if !strings.Contains(text, "\n  "+flag) {
			t.Errorf("no %s in\n%s", flag, text)
		}
	}
	// The defaults are those: saying them changes nothing.
	said := simulate(t, "-instances", "20", "-limit", "1000/s", "-burst", "0", "-load", "2", "-skew", "even", "-shift", "0",
		"-rtt", "2ms", "-horizon", "200ms", "-share", "1", "-crash", "0", "-outage", "0", "-seed", "1", "-duration", "1s")
	if unsaid := simulate(t, "-duration", "1s"); said != unsaid {
		t.Errorf("with all defaults said it prints\n%s\nwithout\n%s", said, unsaid)
	}
}

func TestNumbersOfTheChart(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.125: "0.125", 1.0 / 3: "0.333", 12.5: "12.5", 99.94: "99.9", 100: "100", 123456.7: "123457"} {
		if got := short(x); got != want {
			t.Errorf("%v is written %s, want %s", strconv.FormatFloat(x, 'g', -1, 64), got, want)
		}
	}
}
