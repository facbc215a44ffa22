package browsertest

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestPageForAllReaders: what a screen reader, a phone and a dark screen get.
func TestPageForAllReaders(t *testing.T) {
	b := open(t, playground(t, "-redis", "mini"))
	b.await("the charts", `document.querySelectorAll("canvas").length === 4`)
	b.await("their words", `document.querySelectorAll("[role=img][aria-label*='Mean of the last second']").length === 4`)

	if twice := eval[[]string](b, `[...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`); len(twice) > 0 {
		t.Errorf("ids that are there twice: %v", twice)
	}

	t.Run("everything has a role and a name", func(t *testing.T) {
		named := map[string]int{}
		for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			role, name := word(n.Role), word(n.Name)
			if n.Ignored {
				continue
			}
			switch role {
			case "button", "slider", "combobox", "image", "log", "heading":
				named[role]++
				if name == "" {
					t.Errorf("a %s has no name", role)
				}
			case "status", "alert", "table":
				named[role]++
			}
		}
		for role, least := range map[string]int{
			"button": 11, "slider": 7, "combobox": 1, "image": 4, "log": 1, "table": 2, "heading": 7, "status": 1, "alert": 1,
		} {
			if named[role] < least {
				t.Errorf("%d of the role %s, want at least %d", named[role], role, least)
			}
		}
	})

	t.Run("a phone needs no scrolling sideways", func(t *testing.T) {
		b.t = t
		b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
		b.await("the narrow charts", `document.querySelector("canvas").getBoundingClientRect().width <= 360`)
		if w := eval[int](b, `document.documentElement.scrollWidth`); w > 360 {
			t.Errorf("the page is %d wide on 360 pixels", w)
		}
	})

	t.Run("colours can be read, light and dark", func(t *testing.T) {
		b.t = t
		backs := map[string]bool{}
		for _, scheme := range []string{"light", "dark"} {
			call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			backs[eval[string](b, `getComputedStyle(document.body).backgroundColor`)] = true
			for pair, ratio := range eval[map[string]float64](b, contrasts) {
				if ratio < 4.5 {
					t.Errorf("%s: %s has a contrast of %.2f, want 4.5", scheme, pair, ratio)
				}
			}
		}
		if len(backs) != 2 {
			t.Errorf("the backgrounds are %v, want two", backs)
		}
	})
}

// word is the text of a value of the accessibility tree.
func word(v *accessibility.Value) (text string) {
	if v != nil {
		_ = json.Unmarshal([]byte(v.Value), &text) // not all are texts
	}
	return text
}

// contrasts are those of the page's colours by WCAG 2: text on what it stands on.
const contrasts = `(() => {
	const colour = (name) => {
		const hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
		return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
	};
	const light = (name) => {
		const [r, g, b] = colour(name).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const out = {};
	for (const [a, b] of [["text", "back"], ["text", "panel"], ["soft", "back"], ["soft", "panel"], ["bad", "back"], ["bad", "panel"], ["accent-text", "accent"]]) {
		const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
		out[a + " on " + b] = (high + 0.05) / (low + 0.05);
	}
	return out;
})()`
