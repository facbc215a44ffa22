package main

import (
	"flag"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the program prints into the documents")

// documents show runs of the program and what they print.
var documents = []string{"README.md", "../../docs/tuning.md"}

// A shown run is a command and its output.
var shown = regexp.MustCompile("(?ms)^```console\n\\$ go run \\./examples/simulate ?([^\n]*)\n(.*?)^```")

// What the documents show is what the program prints, to the last digit.
//
// The last digit belongs to the processor as well: math.Exp is not the same on each.
// Elsewhere than where the documents were written, the words must be the same.
func TestDocumentsShowWhatItPrints(t *testing.T) {
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			runs := 0
			fresh := shown.ReplaceAllStringFunc(string(text), func(block string) string {
				runs++
				m := shown.FindStringSubmatch(block)
				command, pattern, piped := strings.Cut(m[1], " | grep ")
				got := simulate(t, strings.Fields(command)...)
				if piped {
					got = grep(got, strings.TrimPrefix(pattern, "-E "))
				}
				if !*update && !alike(got, m[2]) {
					t.Errorf("%s shows of %q\n%s\nit prints (write it with: go test ./examples/simulate -update)\n%s", name, m[1], m[2], got)
				}
				return strings.TrimSuffix(block, m[2]+"```") + got + "```"
			})
			if runs == 0 {
				t.Error("it shows no run")
			}
			if *update {
				if err := os.WriteFile(name, []byte(fresh), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// grep keeps the lines that match.
func grep(text, pattern string) (kept string) {
	re := regexp.MustCompile(strings.Trim(pattern, "'"))
	for line := range strings.Lines(text) {
		if re.MatchString(line) {
			kept += line
		}
	}
	return kept
}

func alike(a, b string) bool {
	if runtime.GOARCH == "amd64" {
		return a == b
	}
	return words(a) == words(b)
}

var word = regexp.MustCompile(`[a-zA-Z]+`)

func words(text string) string { return strings.Join(word.FindAllString(text, -1), " ") }
