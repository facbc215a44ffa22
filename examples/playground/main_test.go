package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The program says where its page is, serves it, and ends when it is told to.
func TestProgramServesThePage(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, in, []string{"-addr", "127.0.0.1:0", "-redis", "mini", "-instances", "3", "-limit", "7", "-burst", "9"})
		ended <- err
		_ = in.Close()
	}()
	said := make(chan string, 1)
	go func() {
		text := make([]byte, 0, 500)
		for !strings.Contains(string(text), "Ctrl-C") {
			line := make([]byte, 500)
			n, err := out.Read(line)
			text = append(text, line[:n]...)
			if err != nil {
				break
			}
		}
		said <- string(text)
	}()
	text := <-said
	if !strings.HasPrefix(text, "3 instances share a limit of 7/s burst 9; Redis: miniredis, inside this program\n") {
		t.Errorf("said %q", text)
	}
	m := regexp.MustCompile(`http://\S+`).FindString(text)
	resp, err := http.Get(m)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(page), "<h1>Limiter playground</h1>") {
		t.Errorf("the page: %d, %v", resp.StatusCode, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestMistakesAreExplained(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-addr", taken.Addr().String()}, "choose another address with -addr"},
		{[]string{"-addr", "nonsense"}, "choose another address with -addr"},
		{[]string{"-limit", "0"}, "limit: from 1 to 20000, not 0"},
		{[]string{"-redis", "nonsense", "-addr", "127.0.0.1:0"}, "want auto, mini"},
		{[]string{"fast"}, `unknown argument "fast"`},
		{[]string{"-fast"}, "flag provided but not defined"},
	} {
		if err := run(t.Context(), io.Discard, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
