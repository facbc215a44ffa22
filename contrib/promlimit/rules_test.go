package promlimit_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

func TestPrometheusAcceptsTheRules(t *testing.T) {
	promtool(t, "check", "rules", rulesFile)
}

// TestPrometheusEvaluatesTheRules as the cases beside them say.
func TestPrometheusEvaluatesTheRules(t *testing.T) {
	promtool(t, "test", "rules", rulesTests)
}

// TestEachAlertHasACaseThatFiresAndOneThatDoesNot among those that Prometheus
// evaluates.
func TestEachAlertHasACaseThatFiresAndOneThatDoesNot(t *testing.T) {
	var cases ruleTest
	if err := yaml.Unmarshal([]byte(readFile(t, rulesTests)), &cases); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, c := range cases.Tests {
		for _, a := range c.Alerts {
			if len(a.Expected) > 0 {
				fires[a.Name] = true
			} else {
				silent[a.Name] = true
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" && !(fires[r.Alert] && silent[r.Alert]) {
			t.Errorf("%s has a case that fires: %v, and one that does not: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		delete(fires, r.Alert)
		delete(silent, r.Alert)
	}
	if len(fires)+len(silent) > 0 {
		t.Errorf("cases of alerts that are not there, for which silence says nothing: %v %v", fires, silent)
	}
}

func TestRulesNameWhatIsThere(t *testing.T) {
	v := vocabularyOf(t)
	for _, r := range rules(t) {
		for _, fault := range v.faults(r.Expr) {
			t.Errorf("%s: %s", r.Alert+r.Record, fault)
		}
	}
}

// TestRecordsHaveValues on what a real limiter shows.
func TestRecordsHaveValues(t *testing.T) {
	var records []string
	for _, r := range rules(t) {
		if r.Record != "" {
			records = append(records, r.Record)
		}
	}
	evaluate(t, records)
}

// TestAlertsSayWhatToDo: each waits before it fires, has a severity and texts, and
// a section of the document.
func TestAlertsSayWhatToDo(t *testing.T) {
	doc := readFile(t, metricsDoc)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		switch r.Labels["severity"] {
		case "critical", "warning", "info":
		default:
			t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
		}
		if r.For == "" {
			t.Errorf("%s fires at once", r.Alert)
		}
		if !strings.Contains(r.Annotations["summary"], "{{ $labels.limiter }}") || r.Annotations["description"] == "" {
			t.Errorf("%s does not say which limiter or what to do: %v", r.Alert, r.Annotations)
		}
		if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/metrics.md#"+strings.ToLower(r.Alert)) ||
			strings.Count(doc, "\n### "+r.Alert+"\n") != 1 {
			t.Errorf("%s has no section %q in docs/metrics.md, or %s is not its address", r.Alert, r.Alert, r.Annotations["runbook_url"])
		}
	}
}

// TestEachMetricIsInTheDocument, and nothing else.
func TestEachMetricIsInTheDocument(t *testing.T) {
	doc := readFile(t, metricsDoc)
	rows := map[string]bool{}
	for line := range strings.Lines(doc) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			rows[strings.Trim(cells[1], " `")] = true
		}
	}
	for _, metric := range exported {
		if !rows[metric] {
			t.Errorf("docs/metrics.md has no row for %s", metric)
		}
	}
	for _, metric := range exported {
		delete(rows, metric)
	}
	for row := range rows {
		t.Errorf("docs/metrics.md has a row for %s, which is not there", row)
	}
}
