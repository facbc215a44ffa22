package promlimit_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/resilient-go/limiter/contrib/promlimit"
)

// TestScrape compares the whole text of a scrape.
func TestScrape(t *testing.T) {
	wanted, err := os.ReadFile(filepath.Join("testdata", "scrape.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, registry(t, &fixed{name: "api", stats: everything()}))
	if got != string(wanted) {
		t.Errorf("a scrape gives\n%s\nwant testdata/scrape.txt", got)
	}
}

func TestNamesFollowTheRulesOfPrometheus(t *testing.T) {
	problems, err := testutil.GatherAndLint(registry(t, &fixed{name: "api", stats: everything()}))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestLimitersInOneProcess(t *testing.T) {
	reg := registry(t, &fixed{name: "api", stats: everything()}, &fixed{name: "login"})
	got := samples(t, reg)
	want(t, "keys of api", got[series("keys")], "12")
	want(t, "keys of login", got[`resilient_limiter_keys{limiter="login"}`], "0")

	// Another collector of a name that is there is told so, and can be told apart.
	var there prometheus.AlreadyRegisteredError
	again := promlimit.NewCollector(&fixed{name: "api"})
	if err := reg.Register(again); !errors.As(err, &there) {
		t.Errorf("a second limiter of one name: %v, want an AlreadyRegisteredError", err)
	}

	// Whoever unregisters takes away one limiter and leaves the others.
	want(t, "unregistered", reg.Unregister(again), true)
	got = samples(t, reg)
	want(t, "keys of login, alone", got[`resilient_limiter_keys{limiter="login"}`], "0")
	for name := range got {
		if strings.Contains(name, `limiter="api"`) {
			t.Fatalf("%s is still there", name)
		}
	}
	if err := reg.Register(again); err != nil {
		t.Errorf("registered again: %v", err)
	}
}

func TestLimitersOfOneNameToldApartByALabel(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	for _, region := range []string{"east", "west"} {
		wrapped := prometheus.WrapRegistererWith(prometheus.Labels{"region": region}, reg)
		if err := wrapped.Register(promlimit.NewCollector(&fixed{name: "api", stats: everything()})); err != nil {
			t.Fatal(err)
		}
	}
	got := samples(t, reg)
	want(t, "east", got[series("keys", "region", "east")], "12")
	want(t, "west", got[series("keys", "region", "west")], "12")
}

func TestAnyNameIsALabel(t *testing.T) {
	for name, label := range map[string]string{
		"":            ``,
		"100/s":       `100/s`,
		"a\"b\\c\nd":  `a\"b\\c\nd`,
		"caf\xe9 bar": "caf\uFFFD bar",
		"日本":          "日本",
	} {
		got := samples(t, registry(t, &fixed{name: name, stats: everything()}))
		want(t, "keys of "+label, got[`resilient_limiter_keys{limiter="`+label+`"}`], "12")
	}
}
