package promlimit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A dashboard is what the tests need of Grafana's model.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Definition string
			Datasource source
		}
	}
	Panels []panel
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	Datasource  source
	GridPos     struct{ H, W, X, Y int }
	Targets     []target
	Panels      []panel
	FieldConfig struct{ Defaults struct{ Unit string } }
}

type target struct {
	RefID, Expr, LegendFormat, Format string
	Datasource                        source
}

type source struct{ Type, UID string }

func board(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// filled is an expression with the dashboard's variables in place.
func filled(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$limiter", "api|other", "$job", ".*").Replace(expr)
}

// exprs are all expressions of the dashboard, by where they stand.
func (d dashboard) exprs() map[string]string {
	all := map[string]string{}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all[fmt.Sprintf("panel %d %q %s", p.ID, p.Title, q.RefID)] = q.Expr
		}
	}
	return all
}

// TestTheDashboardIsWellFormed: unique ids, nothing on top of something else, and no
// query that misses the variables.
func TestTheDashboardIsWellFormed(t *testing.T) {
	d := board(t)
	prometheus := source{"prometheus", "${datasource}"}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schema %d", d.UID, d.Title, d.SchemaVersion)
	}
	variables := map[string]string{}
	for _, v := range d.Templating.List {
		variables[v.Name] = v.Type
		if v.Type == "query" && v.Datasource != prometheus {
			t.Errorf("the variable %s asks %v", v.Name, v.Datasource)
		}
	}
	want(t, "variables", fmt.Sprint(variables), "map[datasource:datasource job:query limiter:query]")
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.ID < 1 || p.Title == "" || len(p.Panels) > 0 {
			t.Errorf("panel %d %q is there twice, has no name or hides others", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies on %q or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource != prometheus || p.Description == "" || len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%q has no data, no description or no unit", p.Title)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] || q.Datasource != prometheus {
				t.Errorf("%q: query %s is there twice or asks %v", p.Title, q.RefID, q.Datasource)
			}
			refs[q.RefID] = true
			if (p.Type == "heatmap") != (q.Format == "heatmap") {
				t.Errorf("%q: query %s has the format %q", p.Title, q.RefID, q.Format)
			}
		}
	}
}

var (
	selector = regexp.MustCompile(`resilient_limiter_\w+(\{job=~"\$job",limiter=~"\$limiter"[,}])?`)
	legend   = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// TestDashboardQueriesFollowTheVariables and keep the labels that their legends
// show.
func TestDashboardQueriesFollowTheVariables(t *testing.T) {
	v := vocabularyOf(t)
	for _, p := range board(t).Panels {
		for _, q := range p.Targets {
			for _, fault := range v.faults(q.Expr) {
				t.Errorf("%q: %s", p.Title, fault)
			}
			for _, m := range selector.FindAllStringSubmatch(q.Expr, -1) {
				if m[1] == "" {
					t.Errorf("%q: %s looks at all limiters", p.Title, q.Expr)
				}
			}
			for _, m := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + m[1] + `\b[^)]*\)`).MatchString(q.Expr) {
					t.Errorf("%q: the legend shows %s, but %s", p.Title, m[1], q.Expr)
				}
			}
		}
	}
}

// TestDashboardQueriesHaveValues on what a real limiter shows, evaluated by
// Prometheus.
func TestDashboardQueriesHaveValues(t *testing.T) {
	all := board(t).exprs()
	if len(all) < 20 {
		t.Fatalf("only %d queries", len(all))
	}
	var list []string
	for _, where := range slices.Sorted(maps.Keys(all)) {
		list = append(list, filled(all[where]))
	}
	evaluate(t, list)
}

func TestEachMetricIsOnTheDashboard(t *testing.T) {
	shown := map[string]bool{}
	for _, expr := range board(t).exprs() {
		for _, name := range seriesName.FindAllString(expr, -1) {
			shown[name] = true
		}
	}
	for _, metric := range exported {
		name := "resilient_limiter_" + metric
		if !shown[name] && !shown[name+"_bucket"] {
			t.Errorf("%s is on no panel", name)
		}
	}
}
