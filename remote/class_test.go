package remote_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/remote"
)

func TestClasses(t *testing.T) {
	type is struct {
		name                            string
		misconfigured, keyOnly, unknown bool
	}
	want := map[remote.Class]is{
		remote.None:        {name: "none"},
		remote.Timeout:     {name: "timeout", unknown: true},
		remote.Connection:  {name: "connection", unknown: true},
		remote.Unavailable: {name: "unavailable"},
		remote.Saturated:   {name: "saturated"},
		remote.Forbidden:   {name: "forbidden", misconfigured: true},
		remote.Script:      {name: "script", misconfigured: true},
		remote.Protocol:    {name: "protocol", misconfigured: true, unknown: true},
		remote.Version:     {name: "version", misconfigured: true, keyOnly: true},
		remote.BadKey:      {name: "badkey", misconfigured: true, keyOnly: true},
		remote.Stale:       {name: "stale", keyOnly: true},
		remote.Moving:      {name: "moving", keyOnly: true},
		remote.Refused:     {name: "refused"},
		remote.Closed:      {name: "closed", misconfigured: true},
		remote.Panic:       {name: "panic", unknown: true},
		remote.Other:       {name: "other", unknown: true},
	}
	if len(want) != remote.Classes {
		t.Errorf("%d classes are tested of %d", len(want), remote.Classes)
	}
	for c, w := range want {
		if got := (is{c.String(), c.Misconfigured(), c.KeyOnly(), c.Unknown()}); got != w {
			t.Errorf("class %d: %+v, want %+v", c, got, w)
		}
	}
	if got := remote.Class(200).String(); got != "class(200)" {
		t.Errorf("an unknown class is called %q", got)
	}
}

// reply is an error of the server as go-redis knows it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

const wrapped = "ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): @user_script:57: "

func TestClassOfReplies(t *testing.T) {
	for text, want := range map[string]remote.Class{
		"LOADING Redis is loading the dataset in memory":                                                  remote.Unavailable,
		"READONLY You can't write against a read only replica. script: 0123, on @user_script:57.":         remote.Unavailable,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                remote.Unavailable,
		"CLUSTERDOWN Hash slot not served":                                                                remote.Unavailable,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                         remote.Moving,
		"NOREPLICAS Not enough good replicas to write.":                                                   remote.Unavailable,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk": remote.Unavailable,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":          remote.Unavailable,
		"UNKILLABLE Sorry the script already executed write commands against the dataset.":                remote.Unavailable,
		"OOM command not allowed when used memory > 'maxmemory'. script: 0123, on @user_script:57.":       remote.Unavailable,
		"MOVED 3999 127.0.0.1:6381":                                                                       remote.Moving,
		"ASK 3999 127.0.0.1:6381":                                                                         remote.Moving,
		"NOSCRIPT No matching script. Please use EVAL.":                                                   remote.Unavailable,
		"ERR max number of clients reached":                                                               remote.Unavailable,
		"NOAUTH Authentication required.":                                                                 remote.Forbidden,
		"WRONGPASS invalid username-password pair or user is disabled.":                                   remote.Forbidden,
		"NOPERM this user has no permissions to run the 'evalsha' command":                                remote.Forbidden,
		"DENIED Redis is running in protected mode because protected mode is enabled":                     remote.Forbidden,
		"ERR The user executing the script can't run this command or subcommand script":                   remote.Forbidden,
		"ERR The user executing the script can't access at least one of the keys":                         remote.Forbidden,
		"ERR ACL failure in script: User app has no permissions to run the 'hset' command":                remote.Forbidden,
		"ERR Protocol error: unauthenticated multibulk length":                                            remote.Forbidden,
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 0123":                  remote.BadKey,
		"CROSSSLOT Keys in request don't hash to the same slot":                                           remote.Script,
		"ERR unknown command 'evalsha', with args beginning with: ":                                       remote.Script,
		"ERR Error compiling script (new function): user_script:1: '=' expected":                          remote.Script,
		"ERR user_script:57: attempt to perform arithmetic on a nil value script: 0123":                   remote.Script,
		"ERR Script attempted to access a non local key in a cluster node":                                remote.Script,

		// Redis < 7 wraps what a command within the script answered.
		wrapped + "WRONGTYPE Operation against a key holding the wrong kind of value":       remote.BadKey,
		wrapped + "-OOM command not allowed when used memory > 'maxmemory'.":                remote.Unavailable,
		wrapped + "-READONLY You can't write against a read only replica.":                  remote.Unavailable,
		wrapped + "-MISCONF Redis is configured to save RDB snapshots, but it is currently": remote.Unavailable,
		wrapped + "-NOREPLICAS Not enough good replicas to write.":                          remote.Unavailable,
		wrapped + "-NOPERM this user has no permissions to run the 'hset' command":          remote.Forbidden,
		wrapped + "The user executing the script can't run this command or subcommand":      remote.Forbidden,
		wrapped + "user_script:57: attempt to perform arithmetic on a nil value":            remote.Script,

		"ERR Error compiling script (new function): :65: WRONGTYPE Operation against a key": remote.BadKey, // miniredis

		"":                           remote.Other,
		"WEIRD nobody has seen this": remote.Other,
		"LOADINGS":                   remote.Other,
		"ERROR":                      remote.Other,
	} {
		if got := remote.ClassOf(reply(text)); got != want {
			t.Errorf("%q is of class %v, want %v", text, got, want)
		}
		if got := remote.ClassOf(fmt.Errorf("failed to authenticate: %w", reply(text))); got != want {
			t.Errorf("wrapped, %q is of class %v, want %v", text, got, want)
		}
	}
}

type slow struct{}

func (slow) Error() string   { return "i/o timeout" }
func (slow) Timeout() bool   { return true }
func (slow) Temporary() bool { return true }

func TestClassOfErrors(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		err  error
		want remote.Class
	}{
		{nil, remote.None},
		{&remote.Error{Class: remote.Stale, Err: io.EOF}, remote.Stale},
		{fmt.Errorf("more: %w", &remote.Error{Class: remote.Version, Err: io.EOF}), remote.Version},
		{redis.Nil, remote.Protocol},
		{redis.ErrClosed, remote.Closed},
		{redis.ErrPoolTimeout, remote.Saturated},
		{redis.ErrPoolExhausted, remote.Saturated},
		{context.DeadlineExceeded, remote.Timeout},
		{context.Canceled, remote.Closed},
		{dial(slow{}), remote.Timeout},
		{slow{}, remote.Timeout},
		{os.ErrDeadlineExceeded, remote.Timeout},
		{io.EOF, remote.Connection},
		{io.ErrUnexpectedEOF, remote.Connection},
		{io.ErrClosedPipe, remote.Connection},
		{net.ErrClosed, remote.Connection},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), remote.Connection},
		{os.NewSyscallError("write", syscall.EPIPE), remote.Connection},
		{syscall.ECONNRESET, remote.Connection},
		{dial(&net.DNSError{Err: "no such host", Name: "redis", IsNotFound: true}), remote.Connection},
		{errors.New("redis: all ring shards are down"), remote.Connection},
		{errors.New("redis: cluster has no nodes"), remote.Connection},
		{errors.New("redis: all sentinels specified in configuration are unreachable"), remote.Connection},
		{fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", redis.Nil), remote.Protocol},
		{errors.New(`redis: can't parse "HTTP/1.1 400 Bad Request"`), remote.Protocol},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, remote.Protocol},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, remote.Protocol},
		{errors.New("something new"), remote.Other},
	} {
		if got := remote.ClassOf(c.err); got != c.want {
			t.Errorf("%v is of class %v, want %v", c.err, got, c.want)
		}
	}
}

func TestErrorSaysWhatFailed(t *testing.T) {
	err := &remote.Error{Class: remote.Timeout, Op: "acquire", Err: io.EOF}
	if got := err.Error(); got != "remote: acquire: timeout: EOF" {
		t.Errorf("the text is %q", got)
	}
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is lost")
	}
}
