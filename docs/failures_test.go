package docs_test

import (
	"strings"
	"testing"
)

// TestEachFailureModeHasATest: each row of a table of failure modes ends with the test
// that shows it. TestNamedTestsExist sees to it that it is there.
func TestEachFailureModeHasATest(t *testing.T) {
	rows := 0
	for _, line := range strings.Split(read(t, "failure-modes.md"), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		switch last := cells[len(cells)-1]; {
		case strings.TrimSpace(last) == "test":
			rows++
		case !testName.MatchString(last) && !strings.HasPrefix(line, "| warm-up"): // there is nothing to show
			t.Errorf("no test in %q", line)
		default:
			rows++
		}
	}
	if rows < 50 {
		t.Errorf("%d rows: were they found?", rows)
	}
}
