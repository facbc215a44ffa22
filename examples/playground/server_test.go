package main

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// served is an engine on miniredis behind its handler.
func served(t *testing.T) (*engine, *httptest.Server) {
	t.Helper()
	redis, err := connect("mini")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.close)
	e, err := start(redis, defaults)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(e.handler())
	t.Cleanup(web.Close)
	t.Cleanup(e.close) // ends the streams first
	return e, web
}

// request returns the status and the error that the answer tells.
func request(t *testing.T, method, url, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Error string }
	_ = json.NewDecoder(resp.Body).Decode(&out) // a refusal of the guard is no JSON
	return resp.StatusCode, out.Error
}

func TestButtonsAndSlidersAreHeard(t *testing.T) {
	e, web := served(t)
	for _, c := range []struct {
		path, body string
		status     int
		wrong      string
	}{
		{"/settings", `{"load": 10, "limit": 50}`, 200, ""},
		{"/settings", `{"instances": 2}`, 200, ""},
		{"/settings", `{"instances": 0}`, 400, "instances: from 1 to 12"},
		{"/settings", strings.Repeat(" ", 5000), 400, "too large"},
		{"/do/freeze", "", 200, ""},
		{"/do/freeze", "", 400, "Redis is frozen"},
		{"/do/thaw", "", 200, ""},
		{"/do/restart-empty", "", 200, ""},
		{"/do/nothing", "", 400, "no action"},
		{"/instances/2/cut", "", 200, ""},
		{"/instances/2/mend", "", 200, ""},
		{"/instances/3/cut", "", 400, "no instance 3"},
		{"/instances/x/cut", "", 400, "there is no /instances/x/cut"},
		{"/instances/1/break", "", 400, "there is no /instances/1/break"},
	} {
		status, wrong := request(t, "POST", web.URL+c.path, c.body, nil)
		if status != c.status || !strings.Contains(wrong, c.wrong) {
			t.Errorf("POST %s %s: %d %q, want %d %q", c.path, c.body, status, wrong, c.status, c.wrong)
		}
	}
	if got := e.now(); got.Load != 10 || got.Limit != 50 || got.Instances != 2 {
		t.Errorf("the settings are %+v", got)
	}
}

// Another site's page in the same browser gets nowhere, and neither does a name that
// somebody points at this machine.
func TestOtherSitesAreKeptOut(t *testing.T) {
	_, web := served(t)
	for name, c := range map[string]struct {
		method string
		change func(*http.Request)
		want   int
	}{
		"our page":          {"POST", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		"another site":      {"POST", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"another origin":    {"POST", func(r *http.Request) { r.Header.Set("Origin", "https://example.com") }, 403},
		"a name for us":     {"GET", func(r *http.Request) { r.Host = "rebound.example.com:8080" }, 403},
		"localhost":         {"GET", func(r *http.Request) { r.Host = "localhost:8080" }, 200},
		"IPv6":              {"GET", func(r *http.Request) { r.Host = "[::1]:8080" }, 200},
		"without a port":    {"GET", func(r *http.Request) { r.Host = "127.0.0.1" }, 200},
		"not a file":        {"GET", func(r *http.Request) { r.URL.Path = "/main.go" }, 404},
		"GET changes nowt":  {"GET", func(r *http.Request) { r.URL.Path = "/do/kill" }, 404},
		"settings are POST": {"GET", func(r *http.Request) { r.URL.Path = "/settings" }, 404},
	} {
		path := "/"
		if c.method == "POST" {
			path = "/settings"
		}
		if status, _ := request(t, c.method, web.URL+path, "{}", c.change); status != c.want {
			t.Errorf("%s: status %d, want %d", name, status, c.want)
		}
	}
}

func TestStreamTellsStateHistoryAndFrames(t *testing.T) {
	e, web := served(t)
	if err := e.cut(0, true); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(web.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<22)
	next := func(event string, v any) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() != "event: "+event {
				continue
			}
			lines.Scan()
			if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), v); err != nil {
				t.Fatalf("%s: %v", event, err)
			}
			return
		}
		t.Fatalf("the stream ended before %s: %v", event, lines.Err())
	}
	var s State
	next("state", &s)
	if s.Settings != defaults || s.Redis != running || s.Cannot[thaw] == "" || s.Cannot[freeze] != "" {
		t.Errorf("state %+v", s)
	}
	var h History
	next("history", &h)
	if len(h.Lines) != 1 || h.Lines[0].Kind != "cut" {
		t.Errorf("history %+v: want the line of the cut", h.Lines)
	}
	var a, b Frame
	next("frame", &a)
	next("frame", &b)
	if b.At <= a.At || len(b.Allowed) != 5 || len(b.Worst) != 3 || !b.Cut[0] {
		t.Errorf("frames %+v and %+v", a, b)
	}
	if err := e.do(freeze); err != nil {
		t.Fatal(err)
	}
	next("state", &s)
	if s.Redis != frozen {
		t.Errorf("Redis is %s after a freeze", s.Redis)
	}
}

// A page that does not read is dropped; it does not hold the others up.
func TestSlowPagesAreDropped(t *testing.T) {
	e, _ := served(t)
	l := e.listen()
	e.mu.Lock()
	for range mostBehind {
		e.send("frame", Frame{})
	}
	_, still := e.listeners[l]
	e.mu.Unlock()
	if still {
		t.Error("a listener that is behind is still there")
	}
	e.leave(l) // as its handler does; a second close would panic
}

// The page loads nothing from elsewhere, and all it names is there.
func TestPageNeedsNoNetwork(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9-]+\.[a-z]`)
	comment := regexp.MustCompile(`(?m)^/\*!.*?\*/|^\s*//.*$`)
	files := 0
	err := fs.WalkDir(assets, "web", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "LICENSE") {
			return err
		}
		files++
		text, err := assets.ReadFile(path)
		if err != nil {
			return err
		}
		rest := comment.ReplaceAllString(string(text), "")
		rest = strings.ReplaceAll(rest, "http://www.w3.org/2000/svg", "")
		if at := elsewhere.FindString(rest); at != "" {
			t.Errorf("%s names %s", path, at)
		}
		return nil
	})
	if err != nil || files < 7 {
		t.Fatalf("%d files, %v", files, err)
	}
	page, err := assets.ReadFile("web/index.html")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:href|src)="([^"#]+)"`).FindAllSubmatch(page, -1)
	if len(named) != 5 {
		t.Errorf("the page names %d files, want 5", len(named))
	}
	for _, m := range named {
		if _, err := fs.Stat(assets, "web/"+string(m[1])); err != nil {
			t.Errorf("the page names %s: %v", m[1], err)
		}
	}
	if _, err := fs.Stat(assets, "web/uplot/LICENSE"); err != nil {
		t.Errorf("the chart library's license: %v", err)
	}
}
