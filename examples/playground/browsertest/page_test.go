package browsertest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// press focuses an element and presses keys, as somebody does who has no mouse.
func (b *browser) press(selector, keys string) {
	b.t.Helper()
	b.do(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(keys))
}

// atTheLimit checks that what is admitted stays at the limit for some seconds. The
// machine may stand still now and then, which is an outage to a limiter: a few less
// and a few more are no fault.
func (b *browser) atTheLimit(when string, limit float64) {
	b.t.Helper()
	const looks = 16
	sum := 0.0
	for range looks {
		n, err := strconv.ParseFloat(b.text("admitted"), 64)
		if err != nil {
			b.t.Fatal(err)
		}
		sum += n
		b.wait(250 * time.Millisecond)
	}
	if mean := sum / looks; mean < 0.7*limit || mean > 1.3*limit {
		b.t.Errorf("%s: %.0f/s admitted over 4 s, want about the limit of %.0f/s", when, mean, limit)
	}
}

// count is an expression for the number of lines of a kind in the log.
func count(kind string) string {
	return fmt.Sprintf(`document.querySelectorAll("#log [data-kind=%s]").length`, kind)
}

// TestRedisFreezesAndComesBack is the tour of the page: the load is pushed above the
// limit, Redis freezes, the page says degraded while the curve stays at the limit,
// Redis is restarted and the page says so.
func TestRedisFreezesAndComesBack(t *testing.T) {
	b := open(t, playground(t, "-redis", "server", "-limit", "500", "-burst", "500", "-load", "200"))
	b.await("the first frame", `Number(document.getElementById("admitted").textContent) > 100`)
	b.await("health", `document.getElementById("status").textContent === "All 5 instances keep one limit"`)

	b.press("#set-load", kb.ArrowRight+kb.ArrowRight+kb.ArrowRight) // 500, 1000, 2000
	b.await("the new load", `document.querySelector("#set-load + output").textContent === "2000/s"`)
	b.await("refusals", `Number(document.getElementById("refused").textContent) > 1200`)
	b.atTheLimit("under four times the limit", 500)

	b.press("[data-action=freeze]", kb.Enter)
	b.await("degraded", `document.getElementById("status").textContent.startsWith("5 of 5 instances degraded")`)
	b.await("the events", count("degraded")+" >= 5")
	b.await("open breakers", `document.getElementById("breakers").textContent === "0 of 5"`)
	b.await("a frozen Redis", `document.getElementById("redis").textContent === "frozen"`)
	b.atTheLimit("degraded", 500)
	b.screenshot()

	b.press("[data-action=restart]", kb.Enter)
	b.await("recovery", `document.getElementById("status").textContent === "All 5 instances keep one limit"`)
	b.await("the events", count("recovered")+" >= 5")
	b.await("closed breakers", `document.getElementById("breakers").textContent === "5 of 5"`)
	b.await("refusals again", `Number(document.getElementById("refused").textContent) > 1200`)
	b.atTheLimit("after the restart", 500)
	if n := eval[int](b, `document.querySelectorAll("#worst .bad").length`); n != 0 {
		t.Errorf("%d worst windows are above the bound: %s", n, eval[string](b, `document.getElementById("worst").innerText`))
	}
	if n := eval[int](b, `document.querySelectorAll("#worst tr").length`); n != 3 {
		t.Errorf("%d worst windows, want 3", n)
	}

	b.press("#instances tr:nth-child(2) button", kb.Enter)
	b.await("one instance alone", `document.getElementById("status").textContent.startsWith("1 of 5")`)
	if on := eval[string](b, `document.activeElement.getAttribute("aria-label")`); on != "Mend: instance 2" {
		t.Errorf("the focus went to %q", on)
	}

	b.press("[data-action=fail-over]", kb.Enter)
	if why := eval[string](b, `document.getElementById(document.activeElement.getAttribute("aria-describedby")).textContent`); !strings.Contains(why, "-redis sentinel") {
		t.Errorf("the button that cannot says %q", why)
	}
}

// screenshot writes the picture of the documents, if a file is named.
func (b *browser) screenshot() {
	file := os.Getenv("PLAYGROUND_SCREENSHOT")
	if file == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
