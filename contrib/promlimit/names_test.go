package promlimit_test

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// scraped is the story as input for promtool: the values of each series from
// scrape to scrape, with the labels that Prometheus adds.
func scraped(t *testing.T) (list []input) {
	t.Helper()
	values := map[string][]string{}
	for _, families := range story(t) {
		for series, value := range flatten(t, families) {
			// "1e+06" is no number in the notation of promtool.
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			values[series] = append(values[series], strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
	for _, series := range slices.Sorted(maps.Keys(values)) {
		name, labels, _ := strings.Cut(series, "{")
		list = append(list, input{
			Series: name + `{job="web",instance="a",` + labels,
			Values: strings.Join(values[series], " "),
		})
	}
	return list
}

// flatten gives the values of families by series, as Prometheus names them:
// histograms are taken apart.
func flatten(t *testing.T, families []*dto.MetricFamily) map[string]string {
	t.Helper()
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	values := map[string]string{}
	for line := range strings.Lines(b.String()) {
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			values[line[:at]] = strings.TrimSpace(line[at+1:])
		}
	}
	return values
}

var (
	seriesName = regexp.MustCompile(`[\w:]*resilient_limiter_\w+(:\w+)?`)
	matcher    = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"([^"]*)"`)
	labelPair  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// A vocabulary is what expressions may name.
type vocabulary struct {
	series map[string]bool
	values map[string]bool // label=value
}

func vocabularyOf(t *testing.T) vocabulary {
	t.Helper()
	v := vocabulary{map[string]bool{}, map[string]bool{}}
	for _, in := range scraped(t) {
		name, _, _ := strings.Cut(in.Series, "{")
		v.series[name] = true
		for _, m := range labelPair.FindAllStringSubmatch(in.Series, -1) {
			v.values[m[1]+"="+m[2]] = true
		}
	}
	for _, r := range rules(t) {
		if r.Record != "" {
			v.series[r.Record] = true
		}
	}
	return v
}

// faults are what an expression names that is not there: a metric, or a value of a
// label.
func (v vocabulary) faults(expr string) (list []string) {
	found := seriesName.FindAllString(expr, -1)
	if len(found) == 0 {
		list = append(list, "no metric in "+expr)
	}
	for _, name := range found {
		if !v.series[name] {
			list = append(list, "there is no "+name)
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		if strings.HasPrefix(m[2], "$") { // a variable of the dashboard
			continue
		}
		for value := range strings.SplitSeq(m[2], "|") {
			if !v.values[m[1]+"="+value] {
				list = append(list, fmt.Sprintf("nothing has %s=%q", m[1], value))
			}
		}
	}
	return list
}

// TestWhatIsNotThereIsNoticed tries the check itself.
func TestWhatIsNotThereIsNoticed(t *testing.T) {
	v := vocabularyOf(t)
	for expr, faults := range map[string]int{
		`resilient_limiter_degraded == 1`: 0,
		`rate(resilient_limiter_redis_calls_total{class!~"none|stale",limiter=~"$limiter"}[5m])`: 0,
		`limiter:resilient_limiter_decisions:rate5m > 1`:                                         0,

		`1`:                                     1,
		`resilient_limiter_nothing`:             1,
		`resilient_limiter_redis_call_seconds`:  1, // only its buckets, sum and count
		`limiter:resilient_limiter_nothing:avg`: 1,
		`resilient_limiter_decisions_total{outcome="denied"}`:                                     1,
		`resilient_limiter_decisions_total{result!="allowed"}`:                                    1,
		`resilient_limiter_redis_calls_total{class=~"none|nobody"} > resilient_limiter_something`: 2,
	} {
		if got := v.faults(expr); len(got) != faults {
			t.Errorf("%s has the faults %v, want %d", expr, got, faults)
		}
	}
}
