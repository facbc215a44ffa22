package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// translated are the pages that exist in Chinese, from the root.
var translated = map[string]string{
	"docs/http.md":          "docs/zh/http.md",
	"docs/migration.md":     "docs/zh/migration.md",
	"docs/algorithms.md":    "docs/zh/algorithms.md",
	"docs/design.md":        "docs/zh/design.md",
	"docs/guarantees.md":    "docs/zh/guarantees.md",
	"docs/security.md":      "docs/zh/security.md",
	"docs/grpc.md":          "docs/zh/grpc.md",
	"docs/failure-modes.md": "docs/zh/failure-modes.md",
	"README.md":             "README.zh-CN.md",
	"docs/composition.md":   "docs/zh/composition.md",
	"docs/faq.md":           "docs/zh/faq.md",
	"docs/operations.md":    "docs/zh/operations.md",
	"docs/tuning.md":        "docs/zh/tuning.md",
}

// untranslated are the pages of docs that do not, and why.
var untranslated = map[string]string{
	"docs/benchmarks.md":   "written by a program",
	"docs/metrics.md":      "a reference of names",
	"docs/requirements.md": "a reference of names",
	"docs/scaling.md":      "figures for the most part",
	"docs/tracing.md":      "for operators of one tool",
}

var han = regexp.MustCompile(`\p{Han}`)

// TestLanguagesSayTheSame: sections, tables, lists, code, names in code, numbers and
// links of a page are the same in both languages, so that neither can fall behind
// unnoticed.
func TestLanguagesSayTheSame(t *testing.T) {
	for english, chinese := range translated {
		t.Run(english, func(t *testing.T) {
			for _, fault := range pageFaults(english, read(t, "../"+english), chinese, read(t, "../"+chinese)) {
				t.Error(fault)
			}
		})
	}
}

// TestChineseLinksStayInChinese: who reads Chinese is led to the Chinese page where
// there is one, and each page leads to its other language.
func TestChineseLinksStayInChinese(t *testing.T) {
	for english, chinese := range translated {
		en, zh := parsePage(english, read(t, "../"+english)), parsePage(chinese, read(t, "../"+chinese))
		if !slices.Contains(en.links, chinese) || !strings.Contains(en.prose[1], "中文") {
			t.Errorf("%s does not lead to %s below its title", english, chinese)
		}
		if !slices.Contains(zh.links, english) || !strings.Contains(zh.prose[1], "[English](") {
			t.Errorf("%s does not lead to %s below its title", chinese, english)
		}
		for _, link := range zh.links {
			if other, ok := translated[link]; ok && link != english {
				t.Errorf("%s leads to %s, which exists in Chinese: %s", chinese, link, other)
			}
		}
	}
}

// TestEachGuideIsInChinese: a page of docs is translated, or it is said why not.
func TestEachGuideIsInChinese(t *testing.T) {
	chinese := map[string]bool{}
	for _, zh := range translated {
		chinese[zh] = true
	}
	for _, pattern := range []string{"*.md", "zh/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			f = "docs/" + filepath.ToSlash(f)
			_, has := translated[f]
			_, excused := untranslated[f]
			if !has && !excused && !chinese[f] {
				t.Errorf("%s is neither translated nor excused", f)
			}
			if has && excused {
				t.Errorf("%s is translated and excused", f)
			}
		}
	}
	for f := range untranslated {
		if _, err := os.Stat("../" + f); err != nil {
			t.Error(err)
		}
	}
}

// pageFaults says in what two languages of a page differ.
func pageFaults(english, en, chinese, zh string) (faults []string) {
	a, b := parsePage(english, en), parsePage(chinese, zh)
	differ := func(what string, a, b []string) {
		if onlyA, onlyB := without(a, b), without(b, a); len(onlyA)+len(onlyB) > 0 {
			faults = append(faults, what+" only in "+english+": "+strings.Join(onlyA, "; ")+
				"\n\tonly in "+chinese+": "+strings.Join(onlyB, "; "))
		}
	}
	differ("names in code", a.spans, b.spans)
	differ("numbers", a.figures, b.figures)
	differ("links", sharedLinks(a.links, english, chinese), sharedLinks(b.links, english, chinese))
	if !slices.Equal(a.shape, b.shape) {
		i := 0
		for i < len(a.shape) && i < len(b.shape) && a.shape[i] == b.shape[i] {
			i++
		}
		faults = append(faults, "sections, tables or lists differ:\n\t"+strings.Join(a.shape[i:min(i+4, len(a.shape))], ", ")+
			"\n\t"+strings.Join(b.shape[i:min(i+4, len(b.shape))], ", "))
	}
	if !slices.Equal(a.code, b.code) {
		faults = append(faults, "code differs (apart from comments)")
	}
	for _, block := range b.prose {
		words := mdLink.ReplaceAllString(span.ReplaceAllString(block, ""), "")
		if len(regexp.MustCompile(`[A-Za-z]`).FindAllString(words, -1)) > 40 && !han.MatchString(words) {
			faults = append(faults, "not translated: "+block)
		}
	}
	return faults
}

// sharedLinks are the links of a page but for those between its languages; a page
// that is translated counts as one in both.
func sharedLinks(links []string, english, chinese string) (shared []string) {
	for _, link := range links {
		for en, zh := range translated {
			if link == zh {
				link = en
			}
		}
		if link != english && link != chinese {
			shared = append(shared, link)
		}
	}
	return shared
}

// without are the elements of a that are not in b, each as often as it is missing.
func without(a, b []string) (rest []string) {
	left := slices.Clone(b)
	for _, x := range a {
		if i := slices.Index(left, x); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			rest = append(rest, x)
		}
	}
	return rest
}

// What drifts apart is found.
func TestDifferencesOfLanguagesAreFound(t *testing.T) {
	en := "# A\n\n[中文](b.md)\n\nWait 50 ms for `Redis`, see [x](https://x.example/7).\n\n| a | b |\n| --- | --- |\n| c | d |\n\n- 1\n- 2\n\n```go\nf() // now\n```\n"
	zh := "# 甲\n\n[English](a.md)\n\n为 `Redis` 等 50 ms，见[某](https://x.example/7)。\n\n| 甲 | 乙 |\n| --- | --- |\n| 丙 | 丁 |\n\n- 1\n- 2\n\n```go\nf() // 现在\n```\n"
	if faults := pageFaults("a.md", en, "b.md", zh); len(faults) > 0 {
		t.Fatalf("equal pages: %q", faults)
	}
	for _, c := range []struct{ old, changed, want string }{
		{"50 ms", "60 ms", "numbers"},
		{"`Redis`", "`Valkey`", "names in code"},
		{"`Redis`", "Redis", "names in code"},
		{"x.example/7", "x.example/8", "links"},
		{"# 甲", "## 甲", "sections"},
		{"| 丙 | 丁 |", "| 丙 | 丁 |\n| 戊 | 己 |", "sections"},
		{"- 1\n", "", "sections"},
		{"- 1\n- 2", "1\n2", "sections"},
		{"f()", "g()", "code"},
		{"```go\nf()", "```sh\nf()", "code"},
		{"为 `Redis` 等 50 ms，见[某]", "Whoever wants to wait for an answer of `Redis` waits for 50 ms at most, see [x]", "not translated"},
	} {
		if !strings.Contains(zh, c.old) {
			t.Fatal(c.old)
		}
		faults := pageFaults("a.md", en, "b.md", strings.Replace(zh, c.old, c.changed, 1))
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, c.want) }) {
			t.Errorf("%q for %q: %q, want %s", c.changed, c.old, faults, c.want)
		}
	}
}
