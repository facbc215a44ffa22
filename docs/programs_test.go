package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A frame makes a program's part into a package, so that it can be compiled: what
// stands before it and after it. It is found by a text that the part has.
type frame struct {
	has    string
	module string // whose dependencies it needs; "": the root
	before string
	after  string
}

var frames = []frame{
	{has: "hybrid.WithTiers(", before: `import (
		"github.com/redis/go-redis/v9"
		"github.com/resilient-go/limiter/hybrid"
	)
	func _(rdb redis.UniversalClient) (*hybrid.Limiter, error) {
	return `, after: "}"},
	{has: "hybrid.PriorityLow}", before: `import (
		"context"
		"github.com/resilient-go/limiter/hybrid"
	)
	func _(ctx context.Context, lim *hybrid.Limiter) {
	`, after: "_, _ = res, err }"},
	{has: "hybrid.Combine(ctx", before: `import (
		"context"
		"github.com/resilient-go/limiter/hybrid"
	)
	func _(ctx context.Context, routes, users, addresses *hybrid.Limiter, user, ip string) {
	`, after: "}"},
	{has: "lim.Reserve(ctx", before: `import (
		"context"
		"github.com/resilient-go/limiter/hybrid"
	)
	func _(ctx context.Context, lim *hybrid.Limiter, team, prompt string, estimate int, model interface {
		Complete(prompt string) struct{ Tokens int }
	}) error {
	`, after: "}"},
	{has: "httplimit.WithSettle(", before: `import (
		"net/http"
		"github.com/resilient-go/limiter/hybrid"
		"github.com/resilient-go/limiter/hybrid/httplimit"
	)
	func _(lim *hybrid.Limiter) {
	`, after: "_, _ = limit, err }"},
	{has: "httplimit.NewTransport(", before: `import (
		"net/http"
		"time"
		"github.com/resilient-go/limiter/hybrid"
		"github.com/resilient-go/limiter/hybrid/httplimit"
	)
	func _(lim *hybrid.Limiter) {
	`, after: "_, _ = client, err }"},
	{has: "echo.WrapMiddleware(", module: "examples/web", before: `import (
		"net/http"
		"github.com/labstack/echo/v4"
	)
	func _(e *echo.Echo, limit func(http.Handler) http.Handler) {
	`, after: "}"},
	{has: "gin.HandlerFunc {", module: "examples/web", before: `import (
		"net/http"
		"github.com/gin-gonic/gin"
	)
	`},
	{has: "grpclimit.NewServer(", module: "contrib/grpclimit", before: `import (
		"google.golang.org/grpc"
		"github.com/resilient-go/limiter/contrib/grpclimit"
		"github.com/resilient-go/limiter/hybrid"
	)
	func _(lim *hybrid.Limiter, authenticate grpc.UnaryServerInterceptor, authenticateStream grpc.StreamServerInterceptor) {
	`, after: "_, _ = srv, err }"},
	{has: "grpclimit.NewClient(", module: "contrib/grpclimit", before: `import (
		"google.golang.org/grpc"
		"github.com/resilient-go/limiter/contrib/grpclimit"
		"github.com/resilient-go/limiter/hybrid"
	)
	func _(lim *hybrid.Limiter, target string) {
	`, after: "_, _ = conn, err }"},
	{has: "promlimit.NewCollector(", module: "contrib/promlimit", before: `import (
		"github.com/prometheus/client_golang/prometheus"
		"github.com/resilient-go/limiter/contrib/promlimit"
		"github.com/resilient-go/limiter/hybrid"
	)
	func _(api, login *hybrid.Limiter) {
	`, after: "}"},
}

// uncompiled are parts that need a library which no module here requires.
var uncompiled = []string{"redisotel.InstrumentTracing("}

// TestCodeInDocumentsCompiles: programs as they are, and parts of programs within
// their frame. No package is called main, so that nothing is linked.
func TestCodeInDocumentsCompiles(t *testing.T) {
	root, files := documents(t)
	dir := t.TempDir()
	overlays := map[string]map[string]string{} // by module: files that are not there, and their texts
	seen := map[string]bool{}                  // code is the same in each language
	used := map[string]bool{}
	for _, file := range files {
		for _, m := range fence.FindAllStringSubmatch(read(t, file), -1) {
			if m[1] != "go" || seen[withoutComments("go", m[2])] {
				continue
			}
			seen[withoutComments("go", m[2])] = true
			module, text, has := framed(m[2])
			if text == "" {
				t.Errorf("%s has code that nothing compiles; give it a frame:\n%s", file, m[2])
				continue
			}
			used[has] = true
			if has == "" && module == "skip" {
				continue
			}
			name := filepath.Join(dir, fmt.Sprintf("%d.go", len(seen)))
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if overlays[module] == nil {
				overlays[module] = map[string]string{}
			}
			from, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			from = strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(filepath.ToSlash(from))
			overlays[module][filepath.Join(root, module, fmt.Sprintf("%s_%d", from, len(seen)), "code.go")] = name
		}
	}
	for _, f := range frames {
		if !used[f.has] {
			t.Errorf("no document has the code %q any more", f.has)
		}
	}
	for module, replace := range overlays {
		overlay := filepath.Join(dir, strings.ReplaceAll(module, "/", "_")+"overlay.json")
		text, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(overlay, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"build", "-overlay", overlay}
		for path := range replace {
			args = append(args, "./"+filepath.Base(filepath.Dir(path)))
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join(root, module)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("module %q: %v\n%s", module, err, out)
		}
	}
}

// framed makes code into a package, and says in whose module it compiles and which
// frame it took. There is no text if none fits.
func framed(code string) (module, text, has string) {
	if program, ok := strings.CutPrefix(code, "package main\n"); ok {
		return "", "package program\n" + program, ""
	}
	for _, part := range uncompiled {
		if strings.Contains(code, part) {
			return "skip", code, ""
		}
	}
	for _, f := range frames {
		if strings.Contains(code, f.has) {
			return f.module, "package part\n" + f.before + strings.ReplaceAll(code, "…\n", "_ = err\n") + f.after + "\n", f.has
		}
	}
	return "", "", ""
}
