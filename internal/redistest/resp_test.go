package redistest

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadCommand(t *testing.T) {
	for _, tt := range []struct {
		raw, name       string
		eval, sha, push bool
	}{
		{raw: "*1\r\n$4\r\nping\r\n", name: "PING"},
		{raw: "*3\r\n$4\r\neval\r\n$6\r\nre\r\nrn\r\n$1\r\n0\r\n", name: "EVAL", eval: true},
		{raw: "*2\r\n$10\r\nEVALSHA_RO\r\n$0\r\n\r\n", name: "EVALSHA_RO", sha: true},
		{raw: "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n", name: "SUBSCRIBE", push: true},
		{raw: "get key\r\n", name: "GET"},
	} {
		r := bufio.NewReader(strings.NewReader(tt.raw + "*rest"))
		c, err := readCommand(r)
		if err != nil {
			t.Errorf("%q: %v", tt.raw, err)
			continue
		}
		if c.name != tt.name || string(c.raw) != tt.raw {
			t.Errorf("%q: name %q, raw %q", tt.raw, c.name, c.raw)
		}
		if c.isEval() != tt.eval || c.isEvalSHA() != tt.sha || c.isPush() != tt.push {
			t.Errorf("%q: eval %v, evalsha %v, push %v", tt.raw, c.isEval(), c.isEvalSHA(), c.isPush())
		}
	}
}

func TestReadReply(t *testing.T) {
	for _, raw := range []string{
		"+OK\r\n",
		"-ERR no\r\n",
		":-12\r\n",
		"$5\r\na\r\nbc\r\n",
		"$0\r\n\r\n",
		"$-1\r\n",
		"*-1\r\n",
		"*0\r\n",
		"*3\r\n:1\r\n$-1\r\n*2\r\n+a\r\n+b\r\n",
		"_\r\n",
		"#t\r\n",
		",1.5\r\n",
		"(123456789012345678901234567890\r\n",
		"!5\r\nERR x\r\n",
		"=7\r\ntxt:abc\r\n",
		"~2\r\n+a\r\n+b\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
		">2\r\n+invalidate\r\n*0\r\n+after a message\r\n",
		"|1\r\n+ttl\r\n:3\r\n+after an attribute\r\n",
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(raw + "+rest\r\n")))
		if err != nil || string(got) != raw {
			t.Errorf("read %q, %v, want %q", got, err, raw)
		}
		_, err = readReply(bufio.NewReader(strings.NewReader(raw[:len(raw)-1])))
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q cut short: %v, want an end of file", raw, err)
		}
	}
	for _, raw := range []string{"$x\r\n", "*x\r\n"} {
		if _, err := readReply(bufio.NewReader(strings.NewReader(raw))); err == nil {
			t.Errorf("%q: no error", raw)
		}
	}
}

func TestErrorReply(t *testing.T) {
	if got := string(errorReply("LOADING a\r\nb")); got != "-LOADING a  b\r\n" {
		t.Errorf("%q", got)
	}
}
