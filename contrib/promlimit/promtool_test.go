package promlimit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// The files that go with the collector.
var (
	rulesFile     = filepath.Join("..", "prometheus", "rules.yml")
	rulesTests    = filepath.Join("..", "prometheus", "rules_test.yml")
	dashboardFile = filepath.Join("..", "grafana", "dashboard.json")
	metricsDoc    = filepath.Join("..", "..", "docs", "metrics.md")
)

// promtool runs Prometheus' own tool, from PATH or from where make puts it.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		program, err = exec.LookPath(filepath.Join("..", "..", ".bin", "promtool"))
	}
	if err != nil {
		t.Fatal("promtool is missing; 'make deps' brings it")
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A rule is an alert or a record.
type rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

func rules(t *testing.T) (list []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(readFile(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) < 10 {
		t.Fatalf("only %d rules", len(list))
	}
	return list
}

// A ruleTest is a file for promtool test rules.
type ruleTest struct {
	Rules    []string   `yaml:"rule_files"`
	Interval string     `yaml:"evaluation_interval"`
	Tests    []ruleCase `yaml:"tests"`
}

type ruleCase struct {
	Name     string      `yaml:"name"`
	Interval string      `yaml:"interval"`
	Input    []input     `yaml:"input_series"`
	Alerts   []alertCase `yaml:"alert_rule_test,omitempty"`
	Exprs    []exprCase  `yaml:"promql_expr_test,omitempty"`
}

type input struct{ Series, Values string }

type alertCase struct {
	Name     string           `yaml:"alertname"`
	Expected []map[string]any `yaml:"exp_alerts"`
}

type exprCase struct {
	Expr    string       `yaml:"expr"`
	At      string       `yaml:"eval_time"`
	Samples []exprSample `yaml:"exp_samples"`
}

type exprSample struct {
	Labels string
	Value  float64
}

// evaluate has Prometheus evaluate the expressions on what it would have scraped
// during the story. Each must give at least one number.
func evaluate(t *testing.T, exprs []string) {
	t.Helper()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	c := ruleCase{Name: "story", Interval: scrapeEvery.String(), Input: scraped(t)}
	for _, expr := range exprs {
		c.Exprs = append(c.Exprs, exprCase{
			// What is not a number is not equal to itself.
			Expr:    "count((" + expr + ") == (" + expr + ")) > bool 0",
			At:      ((scrapes - 1) * scrapeEvery).String(),
			Samples: []exprSample{{"{}", 1}},
		})
	}
	text, err := yaml.Marshal(ruleTest{Rules: []string{rules}, Interval: scrapeEvery.String(), Tests: []ruleCase{c}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "story.yml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", name)
}
