package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	section  = regexp.MustCompile(`(?m)^#+ .*$`)
	measured = regexp.MustCompile(`(?:^|[^±\d])\d[\d.,]* ?(?:ns|µs|bytes|kB|MB|GB|%)|\d[\d,.]* (?:such )?calls`)
	evidence = regexp.MustCompile("go (?:run|test) |`make |`Test[A-Z]|MEMORY USAGE|scaling\\.md|benchmarks\\.md")
)

// Pages of figures that one command made.
var measuredAsAWhole = map[string]string{
	"benchmarks.md": "go run . -out ../docs/benchmarks.md",
	"scaling.md":    "go run ./scaling",
}

// TestFiguresHaveTheirCommand: a section that tells what was measured says by which
// command or test, or links to the page that does.
func TestFiguresHaveTheirCommand(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, "../README.md") {
		text := read(t, file)
		if command, ok := measuredAsAWhole[file]; ok {
			if !strings.Contains(text, command) {
				t.Errorf("%s does not say that %q made it", file, command)
			}
			continue
		}
		found += len(measured.FindAllString(text, -1))
		for _, fault := range figuresWithout(text) {
			t.Errorf("%s: %s", file, fault)
		}
	}
	if found < 30 {
		t.Errorf("only %d figures: the pattern no longer finds them", found)
	}
}

// figuresWithout are the sections with figures of which nobody says whence they are.
func figuresWithout(text string) (faults []string) {
	whole := fence.ReplaceAllStringFunc(text, func(block string) string { return strings.ReplaceAll(block, "\n#", "\n ") })
	starts := append(section.FindAllStringIndex(whole, -1), []int{len(whole), len(whole)})
	for i := range len(starts) - 1 {
		part := whole[starts[i][0]:starts[i+1][0]]
		figures := measured.FindAllString(fence.ReplaceAllString(part, ""), -1)
		if len(figures) > 0 && !evidence.MatchString(part) {
			faults = append(faults, strings.TrimSpace(whole[starts[i][0]:starts[i][1]])+": no command for "+strings.Join(figures, ", "))
		}
	}
	return faults
}

func TestFiguresWithoutACommandAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"# A\n\nIt takes 50 ns.\n":                              1,
		"# A\n\nIt takes 50 ns.\n\n## B\n\n`go test ./lua`\n":   1,
		"# A\n\nIt takes 50 ns, `go test ./lua` says.\n":        0,
		"# A\n\nA jitter of ±20 %, and 5 s.\n":                  0,
		"# A\n\n```sh\n# 50 ns\ngo run ./x\n```\n\n50 bytes.\n": 0,
		"# A\n\n8,800 such calls\n":                             1,
	} {
		if got := figuresWithout(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
