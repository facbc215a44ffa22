package transcript

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBlank(t *testing.T) {
	for _, c := range []struct {
		text, varying, want string
	}{
		{"took 12ms, 3 times", `\d+ms`, "took …, 3 times"},
		{"port 80, port 81", `port (\d+)`, "port …, port …"},
		{"same", `x`, "same"},
	} {
		if got := blank(c.text, []string{c.varying}); got != c.want {
			t.Errorf("%q without %q is %q, want %q", c.text, c.varying, got, c.want)
		}
	}
}

func TestShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	for text, want := range map[string]string{
		"a\n```\none\n```\nb\n```\ntwo\n```\n":               "two\n",
		"a\n```go\ncode\n```\nb\n```\ntwo\nlines\n```\nmore": "two\nlines\n",
		"nothing": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := shown(file)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q shows %q, %v; want %q", text, got, err, want)
		}
	}
}
