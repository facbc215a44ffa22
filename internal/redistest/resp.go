package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A command is one request of a client, as it was on the wire.
type command struct {
	name string // in upper case
	raw  []byte
}

// readCommand reads one request. Clients send arrays of bulk strings; a line
// that does not start with '*' is a command in the inline form.
func readCommand(r *bufio.Reader) (command, error) {
	raw, err := appendFrame(nil, r)
	if err != nil {
		return command{}, err
	}
	name := raw
	if raw[0] == '*' {
		// *<n> CRLF $<len> CRLF <name> CRLF ...
		parts := bytes.SplitN(raw, []byte("\r\n"), 4)
		if len(parts) < 4 {
			return command{}, fmt.Errorf("redistest: not a command: %q", raw)
		}
		name = parts[2]
	}
	name, _, _ = bytes.Cut(bytes.TrimSpace(name), []byte(" "))
	return command{name: strings.ToUpper(string(name)), raw: raw}, nil
}

// isScript tells whether the command runs a script, by its text or its digest.
func (c command) isScript() bool { return c.isEval() || c.isEvalSHA() }

func (c command) isEval() bool    { return c.name == "EVAL" || c.name == "EVAL_RO" }
func (c command) isEvalSHA() bool { return c.name == "EVALSHA" || c.name == "EVALSHA_RO" }

// isPush tells whether the server would answer the command with messages
// rather than with one reply.
func (c command) isPush() bool {
	switch c.name {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR":
		return true
	}
	return false
}

// readReply reads the reply to one command. Out-of-band messages and
// attributes that come before it are part of what it returns.
func readReply(r *bufio.Reader) ([]byte, error) {
	var raw []byte
	for {
		start := len(raw)
		var err error
		if raw, err = appendFrame(raw, r); err != nil {
			return nil, err
		}
		if kind := raw[start]; kind != '>' && kind != '|' {
			return raw, nil
		}
	}
}

// appendFrame appends one RESP2 or RESP3 value to b, as it is on the wire.
func appendFrame(b []byte, r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	b = append(b, line...)
	size := func() (int, error) { return strconv.Atoi(string(bytes.TrimSpace(line[1:]))) }
	switch line[0] {
	case '$', '!', '=': // a string of n bytes, and CRLF
		n, err := size()
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return b, nil
		}
		start := len(b)
		b = append(b, make([]byte, n+2)...)
		_, err = io.ReadFull(r, b[start:])
		return b, err
	case '*', '~', '>', '%', '|': // n values, or n pairs of them
		n, err := size()
		if err != nil {
			return nil, err
		}
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		for range n {
			if b, err = appendFrame(b, r); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// errorReply makes an error reply of the text, which begins with its code.
func errorReply(text string) []byte {
	text = strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
	return []byte("-" + text + "\r\n")
}

// do sends one command on a connection of its own and returns the reply as it
// is on the wire. An error reply is an error.
func do(dial func() (net.Conn, error), limit time.Duration, args ...string) (string, error) {
	conn, err := dial()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := conn.Write(b.Bytes()); err != nil {
		return "", err
	}
	raw, err := readReply(bufio.NewReader(conn))
	if err != nil {
		return "", err
	}
	if raw[0] == '-' {
		return "", errors.New(strings.TrimSpace(string(raw[1:])))
	}
	return string(raw), nil
}
