package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}

// A rowRead is a row of the output.
type rowRead struct {
	admitted, lease, redis, outage int
	p99                            time.Duration
}

var (
	rowLine = regexp.MustCompile(`admitted +(\d+)/s: lease +(\d+) %, Redis +(\d+) %, outage policy +(\d+) %; p99 (\S+)`)
	sumLine = regexp.MustCompile(`in all (\d+) admitted, (\d+) from leases and by Redis, where one bucket admits at most (\d+); the slowest decision took (\S+)`)
)

// parse reads the output: its rows, what happened by instance, and the last line.
func parse(t *testing.T, text string) (rows []rowRead, events map[string][]string, sum []string) {
	t.Helper()
	events = map[string][]string{}
	for line := range strings.Lines(text) {
		if m := rowLine.FindStringSubmatch(line); m != nil {
			var n [4]int
			for i := range n {
				n[i], _ = strconv.Atoi(m[i+1])
			}
			p99, err := time.ParseDuration(m[5])
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, rowRead{n[0], n[1], n[2], n[3], p99})
		}
		if m := regexp.MustCompile(`(instance \d): (degraded \(\w+\)|recovered)`).FindStringSubmatch(line); m != nil {
			events[m[1]] = append(events[m[1]], m[2])
		}
		if m := sumLine.FindStringSubmatch(line); m != nil {
			sum = m[1:]
		}
	}
	if sum == nil {
		t.Fatalf("no last line in\n%s", text)
	}
	return rows, events, sum
}

// checkSum says if leases and Redis gave more than one bucket.
func checkSum(t *testing.T, sum []string) {
	t.Helper()
	paid, _ := strconv.Atoi(sum[1])
	bound, _ := strconv.Atoi(sum[2])
	if paid == 0 || paid > bound {
		t.Errorf("%d from leases and by Redis; one bucket admits at most %d", paid, bound)
	}
}

// On fake time all is known: the outage policy keeps the limit, no decision takes
// longer than the remote time-out, and events come in order.
func TestOutagesOnFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := redistest.Bubble(t)
		b.Delay(time.Millisecond)
		var out bytes.Buffer
		if err := tell(t.Context(), &out, clients(b), killAndFreeze(b), func(f func()) error { f(); return nil }); err != nil {
			t.Fatal(err)
		}
		rows, events, sum := parse(t, out.String())
		if len(rows) != 22 {
			t.Fatalf("%d rows, want 22:\n%s", len(rows), &out)
		}
		for _, i := range []int{5, 6, 7, 13, 14, 15} { // in the outages, but for their first half second
			if r := rows[i]; r.admitted < 190 || r.admitted > 210 || r.outage != 100 || r.p99 != 0 {
				t.Errorf("row %d of an outage: %+v, want the limit from the outage policy at once", i, r)
			}
		}
		// In the last row a part of what the outage admitted may still be paid for.
		for i, least := range map[int]int{3: 150, 21: 90} {
			if r := rows[i]; r.admitted < least || r.admitted > 250 || r.outage != 0 {
				t.Errorf("row %d with Redis: %+v, want the limit", i, r)
			}
		}
		for i := range instances {
			name := fmt.Sprintf("instance %d", i+1)
			want := []string{"degraded (connection)", "recovered", "degraded (timeout)", "recovered"}
			if got := events[name]; !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if sum[3] != "50ms" {
			t.Errorf("the slowest decision took %s, want the remote time-out", sum[3])
		}
		// What the outage policy admitted was charged afterwards: all together stay near
		// what one bucket admits.
		all, _ := strconv.Atoi(sum[0])
		if bound, _ := strconv.Atoi(sum[2]); all > bound+bound/20 {
			t.Errorf("%d admitted in all, where one bucket admits %d", all, bound)
		}
		checkSum(t, sum)
	})
}

// On a real server, in real time: the same story.
func TestOutagesOfARealServer(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, "server"); err != nil {
		t.Fatal(err)
	}
	rows, events, sum := parse(t, out.String())
	if len(rows) != 22 {
		t.Errorf("%d rows, want 22", len(rows))
	}
	for _, i := range []int{6, 7, 14, 15} {
		if r := rows[i]; r.outage != 100 || r.admitted < 20 || r.admitted > 400 {
			t.Errorf("row %d of an outage: %+v", i, r)
		}
	}
	for i := range instances {
		got := events[fmt.Sprintf("instance %d", i+1)]
		degraded := 0
		for k, e := range got {
			if e != "recovered" {
				degraded++
			}
			if (e == "recovered") != (k%2 == 1) {
				t.Errorf("instance %d: events out of order: %v", i+1, got)
			}
		}
		if degraded < 2 || len(got)%2 == 1 && len(got) < 5 {
			t.Errorf("instance %d: %v, want two outages and two recoveries", i+1, got)
		}
	}
	checkSum(t, sum)
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestSentinelsFailOver(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, "sentinel"); err != nil {
		t.Fatal(err)
	}
	_, events, _ := parse(t, out.String())
	for i := range instances {
		got := events[fmt.Sprintf("instance %d", i+1)]
		if n := len(got); n < 2 || got[n-1] != "recovered" {
			t.Errorf("instance %d: %v, want an outage and a recovery in the end\n%s", i+1, got, &out)
		}
	}
}

// What the README shows is read by the same rules.
func TestReadmeShowsTheStory(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, events, sum := parse(t, string(text))
	if len(rows) != 22 || len(events) != instances {
		t.Errorf("%d rows and events of %d instances, want 22 and %d", len(rows), len(events), instances)
	}
	checkSum(t, sum)
}

func TestMistakesAreExplained(t *testing.T) {
	if err := run(t.Context(), io.Discard, "redis://localhost"); err == nil || !strings.Contains(err.Error(), "want auto, server, mini or sentinel") {
		t.Errorf("a URL: %v", err)
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	if got := percentile(all, 99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	for p, want := range map[int]time.Duration{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := percentile(all, p); got != want {
			t.Errorf("%d: %v, want %v", p, got, want)
		}
	}
}
