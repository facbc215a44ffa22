package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachExampleIsListed, has a README that says how it is run, and a test.
func TestEachExampleIsListed(t *testing.T) {
	index := read(t, "../examples/README.md")
	found := 0
	err := filepath.WalkDir("../examples", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "main.go" {
			return err
		}
		found++
		dir := filepath.Dir(path)
		name, err := filepath.Rel("../examples", dir)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !strings.Contains(index, "]("+name+"/README.md) |") {
			t.Errorf("examples/README.md does not list %s", name)
		}
		if text := read(t, filepath.Join(dir, "README.md")); !strings.Contains(text, "go run ") {
			t.Errorf("examples/%s/README.md does not say how it is run", name)
		}
		if tests, err := filepath.Glob(filepath.Join(dir, "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("examples/%s has no test: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(index, "]("); rows != found {
		t.Errorf("examples/README.md has %d links for %d programs", rows, found)
	}
}
