// Package transcript compares what an example prints with what its README shows.
package transcript

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// tries: a machine that stands still for the remote time-out is an outage to a
// limiter, and the output then tells of it. That is no fault of the example.
const tries = 3

// Check runs a program until it prints what the last block between two lines of
// ``` in README.md shows, three times at most. What the expressions match may
// differ; if one has a group, only the group may.
func Check(t *testing.T, run func(out io.Writer) error, varying ...string) {
	t.Helper()
	want, err := shown("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range tries {
		var out bytes.Buffer
		err := run(&out)
		got, wanted := blank(out.String(), varying), blank(want, varying)
		if err == nil && got == wanted {
			return
		}
		text := fmt.Sprintf("error %v, printed\n%s\nwithout what varies:\n%s\nwant\n%s", err, &out, got, wanted)
		if i == tries-1 {
			t.Error(text)
		} else {
			t.Log(text)
		}
	}
}

// shown is the last block of a document.
func shown(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	parts := strings.Split(string(text), "```\n")
	if len(parts) < 3 {
		return "", fmt.Errorf("%s shows no output", file)
	}
	return parts[len(parts)-2], nil
}

// blank replaces what varies.
func blank(text string, varying []string) string {
	for _, v := range varying {
		re := regexp.MustCompile(v)
		text = re.ReplaceAllStringFunc(text, func(all string) string {
			m := re.FindStringSubmatchIndex(all)
			if len(m) < 4 {
				return "…"
			}
			return all[:m[2]] + "…" + all[m[3]:]
		})
	}
	return text
}
