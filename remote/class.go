package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Class is what an error says about Redis. It decides whether the breaker
// counts it, whether it is reported as a fault of the set-up, and how it is
// counted; never whether a request is admitted.
type Class uint8

// The classes of errors.
const (
	// None: no error.
	None Class = iota
	// Timeout: no answer within our own bound. The script may have run.
	Timeout
	// Connection: dial, DNS, EOF, reset, closed pool. The script may have run.
	Connection
	// Unavailable: a server that answers but cannot serve now: LOADING, READONLY,
	// MASTERDOWN, CLUSTERDOWN, OOM, BUSY, MISCONF, NOREPLICAS, too many clients.
	Unavailable
	// Saturated: every call that may be in flight is stuck, or no connection was
	// free. Nothing was sent.
	Saturated
	// Forbidden: NOAUTH, WRONGPASS, NOPERM, protected mode. Waiting does not help.
	Forbidden
	// Script: the server does not run our script: unknown command, compile error,
	// undeclared key. Waiting does not help.
	Script
	// Protocol: the answer is not ours: a proxy, another service, another version.
	Protocol
	// Version: the stored state is of a newer format (a rolling deploy).
	Version
	// BadKey: the key holds something else (WRONGTYPE). Only this key suffers.
	BadKey
	// Stale: a later message of ours was answered first. Nothing was changed.
	Stale
	// Moving: the slot of the key is on its way to another node, and the client did not
	// follow: MOVED, ASK, TRYAGAIN. Only the keys of that slot suffer.
	Moving
	// Refused: the guard did not let the call pass. Nothing was sent.
	Refused
	// Closed: the client was closed, by its owner or by our Close.
	Closed
	// Panic: a hook of the client panicked.
	Panic
	// Other: an error that nobody has seen before. It counts as an outage.
	Other

	// Classes is the number of classes.
	Classes = int(Other) + 1
)

var classNames = [...]string{
	"none", "timeout", "connection", "unavailable", "saturated", "forbidden", "script",
	"protocol", "version", "badkey", "stale", "moving", "refused", "closed", "panic", "other",
}

// String is the class in one word, fit for a metric label.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// Misconfigured reports whether somebody has to change something before Redis
// can be used again.
func (c Class) Misconfigured() bool {
	switch c {
	case Forbidden, Script, Protocol, Version, BadKey, Closed:
		return true
	default:
		return false
	}
}

// KeyOnly reports whether the error concerns one key and not the server.
func (c Class) KeyOnly() bool { return c == BadKey || c == Version || c == Stale || c == Moving }

// Unknown reports whether the script may have run although no answer came.
func (c Class) Unknown() bool {
	switch c {
	case Timeout, Connection, Protocol, Panic, Other:
		return true
	default:
		return false
	}
}

// An Error is a failed call with its class.
type Error struct {
	Class Class
	Op    string // the script: "acquire"
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("remote: %s: %s: %v", e.Op, e.Class, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// A fault is an error of our own; callers see it inside an *Error.
type fault struct {
	class Class
	text  string
}

func (f *fault) Error() string { return f.text }

var (
	errTimeout   = &fault{Timeout, "no answer within the time-out"}
	errSaturated = &fault{Saturated, "all calls in flight are stuck"}
	errClosed    = &fault{Closed, "the limiter is closed"}
	errRefused   = &fault{Refused, "the circuit breaker is open"}
	errNewer     = &fault{Version, "the state is of a newer format"}
	errStale     = &fault{Stale, "a later message was answered first"}
)

func protocol(format string, args ...any) error {
	return &fault{Protocol, fmt.Sprintf(format, args...)}
}

// wrap makes an *Error of an error of this package or of go-redis.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Class: classify(err), Op: op, Err: err}
}

// ClassOf gives the class of an error: of an *Error its own, of anything else
// what go-redis' error means.
func ClassOf(err error) Class {
	if err == nil {
		return None
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return classify(err)
}

// replies maps the beginning of a server's error to its class. Redis appends
// the script's name and line to some, so nothing is compared as a whole.
var replies = []struct {
	prefix string
	class  Class
}{
	{"LOADING ", Unavailable},
	{"READONLY ", Unavailable},
	{"MASTERDOWN ", Unavailable},
	{"CLUSTERDOWN ", Unavailable},
	{"TRYAGAIN ", Moving},
	{"NOREPLICAS ", Unavailable},
	{"MISCONF ", Unavailable},
	{"BUSY ", Unavailable},
	{"UNKILLABLE ", Unavailable},
	{"OOM ", Unavailable},
	{"MOVED ", Moving},
	{"ASK ", Moving},
	{"NOSCRIPT ", Unavailable}, // again after the body was sent: scripts are being flushed
	{"ERR max number of clients", Unavailable},
	{"NOAUTH ", Forbidden},
	{"WRONGPASS ", Forbidden},
	{"NOPERM ", Forbidden},
	{"DENIED ", Forbidden},
	// Where a password is wanted Redis does not even read our many arguments.
	{"ERR Protocol error: unauthenticated", Forbidden},
	{"ERR The user executing the script", Forbidden}, // Redis 7.0: can't run, can't access
	{"ERR ACL failure in script", Forbidden},
	{"WRONGTYPE ", BadKey},
	{"CROSSSLOT ", Script},
	{"ERR ", Script},
}

func classify(err error) Class {
	var reply redis.Error
	if errors.As(err, &reply) {
		if errors.Is(err, redis.Nil) {
			return Protocol // our scripts never answer nil
		}
		return classifyReply(reply.Error())
	}
	var (
		own     *fault
		network net.Error
	)
	switch {
	case errors.As(err, &own):
		return own.class
	case errors.Is(err, redis.ErrClosed):
		return Closed
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return Saturated
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout // the context was ours
	case errors.As(err, &network) && network.Timeout():
		return Timeout
	case errors.Is(err, context.Canceled):
		return Closed // and only Close cancels it
	case isConnection(err), isNoServer(err):
		return Connection
	case isTLS(err), strings.HasPrefix(err.Error(), "redis: "):
		return Protocol // a reply that go-redis cannot read
	default:
		return Other
	}
}

// classifyReply gives the class of an error that the server sent. Redis < 7
// and miniredis wrap what a command within a script answered; later versions
// append the script's name and line.
func classifyReply(text string) Class {
	wrapped := strings.HasPrefix(text, "ERR Error running script") || strings.HasPrefix(text, "ERR Error compiling script")
	for _, r := range replies {
		if strings.HasPrefix(text, r.prefix) && !wrapped ||
			wrapped && r.prefix != "ERR " && strings.Contains(text, r.prefix) {
			return r.class
		}
	}
	switch {
	case wrapped && strings.Contains(text, "The user executing the script"):
		return Forbidden
	case wrapped:
		return Script
	default:
		return Other
	}
}
