package browsertest

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// program is where the playground was built.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "playground-")
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		program = filepath.Join(dir, "playground")
		build := exec.Command("go", "build", "-o", program, "./examples/playground")
		build.Dir = filepath.Join("..", "..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			log.Printf("build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// playground runs the program until the test ends, and returns the address of its
// page.
func playground(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	run := exec.CommandContext(ctx, program, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	run.WaitDelay = 10 * time.Second
	var complaints strings.Builder
	run.Stderr = &complaints
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = run.Wait() // it was killed
		if complaints.Len() > 0 {
			t.Errorf("the playground complained: %s", &complaints)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at := regexp.MustCompile(`http://\S+`).FindString(lines.Text()); at != "" {
			return at
		}
	}
	t.Fatal("the playground ended before it said where its page is")
	return ""
}

// A browser is a page in Chromium, and what went wrong in it.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex // guards what follows
	faults   []string
	requests int
}

// open shows a page in a browser that ends with the test. The test fails if the page
// throws, writes an error to the console, or asks another host for anything.
func open(t *testing.T, address string) *browser {
	t.Helper()
	home, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Second)
	t.Cleanup(stop)
	ctx, end := chromedp.NewExecAllocator(ctx,
		chromedp.Headless, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.NoSandbox, // a container's root has none
		chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WindowSize(1280, 900))
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Error(f)
		}
	})
	err = chromedp.Listen(ctx, func(event any) {
		switch v := event.(type) {
		case *runtime.EventExceptionThrown:
			b.fault("the page threw: " + fmt.Sprintf("%s, %s:%d", v.ExceptionDetails.Text, v.ExceptionDetails.URL, v.ExceptionDetails.LineNumber+1))
		case *runtime.EventConsoleAPICalled:
			if v.Type == runtime.ConsoleAPICalledTypeError {
				b.fault("the page wrote an error to the console")
			}
		case *network.EventRequestWillBeSent:
			b.mu.Lock()
			b.requests++
			b.mu.Unlock()
			if at, err := url.Parse(v.Request.URL); err != nil || at.Host != home.Host {
				b.fault("the page asked for " + v.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, runtime.Enable, cdp.Empty{})
	b.do(chromedp.Navigate(address))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.requests < 7 {
		t.Errorf("%d requests of the page were seen: the listener does not work", b.requests)
	}
	return b
}

func (b *browser) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.faults, text) {
		b.faults = append(b.faults, text)
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// call runs a command of the protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text is that of an element.
func (b *browser) text(id string) string {
	b.t.Helper()
	return eval[string](b, `document.getElementById("`+id+`").textContent`)
}

// await polls an expression until it is true, for 30 seconds.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !eval[bool](b, expression) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s did not come: status %q, admitted %s, error %q, log:\n%s", what, b.text("status"),
				b.text("admitted"), b.text("error"), eval[string](b, `document.getElementById("log").innerText`))
		}
		b.wait(50 * time.Millisecond)
	}
}

// wait lets real time pass: the page and the program live in it.
func (b *browser) wait(d time.Duration) {
	select {
	case <-b.ctx.Done():
	case <-time.After(d):
	}
}
