package grpclimit_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func TestWrongOptionsOfAServer(t *testing.T) {
	onLimited := grpclimit.WithOnLimited(func(context.Context, grpclimit.Call, hybrid.Result) error { return nil })
	for text, options := range map[string][]grpclimit.Option{
		"WithKey: the key has no parts":                             {grpclimit.WithKey()},
		"Join: a key has no parts":                                  {grpclimit.WithKey(grpclimit.ByMethod(), grpclimit.Key{})},
		"WithKey: ByTarget is unknown on this side of a connection": {grpclimit.WithKey(grpclimit.ByTarget())},
		"ByFunc: the function is nil":                               {grpclimit.WithKey(grpclimit.ByMethod(), grpclimit.ByFunc(nil))},
		"Fixed: the text is empty":                                  {grpclimit.WithKey(grpclimit.Fixed(""))},
		`ByMetadata: "" is no name in metadata`:                     {grpclimit.WithKey(grpclimit.ByMetadata(""))},
		`ByMetadata: ":authority" is no name in metadata`:           {grpclimit.WithKey(grpclimit.ByMetadata(":authority"))},
		"ByMetadata: anybody can write x-forwarded-for: use ByIP with trusted proxies": {
			grpclimit.WithKey(grpclimit.ByMetadata("X-Forwarded-For")),
		},
		"ByIP: httplimit: GroupIPv6: must be from 32 to 128, not 129": {
			grpclimit.WithKey(grpclimit.ByIP(httplimit.GroupIPv6(129))),
		},
		"WithCode: OK is no code of an error":                   {grpclimit.WithCode(codes.OK)},
		"WithCode: Code(17) is no code of an error":             {grpclimit.WithCode(17)},
		"WithDegradedCode: OK is no code of an error":           {grpclimit.WithDegradedCode(codes.OK)},
		"WithPolicyName: the name is empty":                     {grpclimit.WithPolicyName("")},
		"WithPerMessage: must be Received, Sent or both, not 0": {grpclimit.WithPerMessage(0)},
		"WithPerMessage: must be Received, Sent or both, not 4": {grpclimit.WithPerMessage(4)},
		"WithOnLimited: contradicts WithCode, WithDegradedCode, WithKeyInDetails and WithPolicyName": {
			onLimited, grpclimit.WithKeyInDetails(),
		},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := grpclimit.NewServer(says(allowed, nil), options...)
			wantConfigError(t, err, text)
		})
	}
	for _, option := range []grpclimit.Option{
		grpclimit.WithCode(codes.Unavailable), grpclimit.WithDegradedCode(codes.Unavailable), grpclimit.WithPolicyName("a"),
	} {
		_, err := grpclimit.NewServer(says(allowed, nil), onLimited, option)
		wantConfigError(t, err, "WithOnLimited: contradicts WithCode, WithDegradedCode, WithKeyInDetails and WithPolicyName")
	}
	for _, lim := range []grpclimit.Limiter{nil, (*hybrid.Limiter)(nil)} {
		_, err := grpclimit.NewServer(lim)
		wantConfigError(t, err, "NewServer: the limiter is nil")
	}
	if _, err := grpclimit.NewServer(says(allowed, nil), nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

func TestWrongOptionsOfAClient(t *testing.T) {
	for text, options := range map[string][]grpclimit.ClientOption{
		"WithClientKey: the key has no parts":                         {grpclimit.WithClientKey()},
		"WithClientKey: ByIP is unknown on this side of a connection": {grpclimit.WithClientKey(grpclimit.ByIP())},
		"WithPauseKey: ByIP is unknown on this side of a connection":  {grpclimit.WithPauseKey(grpclimit.ByMethod(), grpclimit.ByIP())},
		"WithPauseKey: the key has no parts":                          {grpclimit.WithPauseKey()},
		"WithoutPauses: contradicts WithPauseKey":                     {grpclimit.WithoutPauses(), grpclimit.WithPauseKey(grpclimit.ByMethod())},
		"WithMaxPause: must be positive, not 0s":                      {grpclimit.WithMaxPause(0)},
		"WithMaxPauses: must be at least 1, not 0":                    {grpclimit.WithMaxPauses(0)},
		"WithClientPerMessage: must be Received, Sent or both, not 8": {grpclimit.WithClientPerMessage(8)},
		"WithClientPerMessage: must be Received, Sent or both, not 0": {grpclimit.WithClientPerMessage(0)},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := grpclimit.NewClient(says(allowed, nil), options...)
			wantConfigError(t, err, text)
		})
	}
	for _, lim := range []grpclimit.WaitLimiter{nil, (*hybrid.Limiter)(nil)} {
		_, err := grpclimit.NewClient(lim)
		wantConfigError(t, err, "NewClient: the limiter is nil")
	}
	if _, err := grpclimit.NewClient(says(allowed, nil), nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

func wantConfigError(t *testing.T, err error, text string) {
	t.Helper()
	var fault *grpclimit.ConfigError
	if !errors.As(err, &fault) || err.Error() != "grpclimit: "+text {
		t.Errorf("%v, want %s", err, text)
	}
}
