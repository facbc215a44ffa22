// Package docs_test checks the documents: that their programs build, their links
// lead somewhere, and the README stays short.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// documents are all Markdown files of the repository, seen from its root.
func documents(t *testing.T) (root string, files []string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Fatalf("only %d documents below %s", len(files), root)
	}
	return root, files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	_, files := documents(t)
	for _, file := range files {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			target, place, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			} else if place != "" && !slices.Contains(places(read(t, path)), place) {
				t.Errorf("%s links to %s, where no section has that name", file, m[1])
			}
		}
	}
}

// places are the names under which the sections of a page can be linked to.
func places(text string) (names []string) {
	for _, line := range strings.Split(fence.ReplaceAllString(text, ""), "\n") {
		if !heading.MatchString(line) {
			continue
		}
		name := strings.ToLower(strings.TrimLeft(line, "# "))
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return r
			}
			return -1
		}, name))
	}
	return names
}

func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, "../README.md"), "\n"); n >= 200 {
		t.Errorf("the README has %d lines; it should stay below 200", n)
	}
}

// Every decision is listed, so that a reader finds it.
func TestDecisionsAreListed(t *testing.T) {
	index := read(t, "adr/README.md")
	files, err := filepath.Glob("adr/0*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no decisions", err)
	}
	for _, f := range files {
		if !strings.Contains(index, filepath.Base(f)) {
			t.Errorf("adr/README.md does not list %s", filepath.Base(f))
		}
	}
}

var testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")

// TestNamedTestsExist: a document that says which test shows something must not
// outlive the test.
func TestNamedTestsExist(t *testing.T) {
	root, files := documents(t)
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(read(t, path), -1) {
				known[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, file := range files {
		for _, m := range testName.FindAllStringSubmatch(read(t, file), -1) {
			if named++; !known[m[1]] {
				t.Errorf("%s names %s, which does not exist", file, m[1])
			}
		}
	}
	if named < 40 {
		t.Errorf("only %d tests are named: the pattern no longer finds them", named)
	}
}
