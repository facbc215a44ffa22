package grpclimit

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/resilient-go/limiter/hybrid"
)

// Texts of errors. Nothing in them comes from the limiter's errors.
const (
	textLimited  = "the quota is used up"
	textDegraded = "the capacity is reduced for a while"
	textTooMuch  = "the call costs more than its quota ever allows"
	textNoKey    = "the call lacks what its quota is counted by"
	textUnable   = "the call's quota cannot be checked now"
)

// refuse gives the error of a call that the limiter refused.
func (s *Server) refuse(ctx context.Context, c Call, key string, res hybrid.Result) error {
	if s.onLimited != nil {
		return s.onLimited(ctx, c, res)
	}
	code, text := s.code, textLimited
	if res.Source == hybrid.SourceDegraded {
		code, text = s.degradedCode, textDegraded
	}
	subject := s.policyName(res.Limit)
	if s.keyInDetails {
		subject = key
	}
	return limited(code, text, res.RetryAfter, subject).Err()
}

func (s *Server) policyName(l hybrid.Limit) string {
	if s.nameSet {
		return s.name
	}
	return l.String()
}

// limited is the status of a refusal. It has a RetryInfo only if waiting helps:
// clients may retry by it alone.
func limited(code codes.Code, text string, retryAfter time.Duration, subject string) *status.Status {
	st := status.New(code, text)
	var details []protoadapt.MessageV1
	if retryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	if subject != "" {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
			{Subject: strings.ToValidUTF8(subject, "\uFFFD"), Description: text},
		}})
	}
	with, err := st.WithDetails(details...)
	if err != nil { // an error's code and valid texts: it cannot be
		return st
	}
	return with
}

// fail gives the error of a call that could not be decided.
func (s *Server) fail(ctx context.Context, c Call, err error) error {
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return status.FromContextError(ended).Err()
	}
	if s.onError != nil {
		return s.onError(ctx, c, err)
	}
	switch {
	case errors.Is(err, ErrNoKey):
		s.warn(ctx, c, complaintRefused, "grpclimit: a call without a key is refused")
	case errors.Is(err, hybrid.ErrExceedsBurst):
		s.warn(ctx, c, complaintFailed, "grpclimit: a call costs more than the burst")
	default:
		s.warn(ctx, c, complaintFailed, "grpclimit: the limiter cannot decide", "error", err)
	}
	return statusOf(err).Err()
}

// statusOf is the status of an error of the limiter.
func statusOf(err error) *status.Status {
	switch {
	case errors.Is(err, ErrNoKey):
		return status.New(codes.InvalidArgument, textNoKey)
	case errors.Is(err, hybrid.ErrExceedsBurst): // it can never pass, so it has no RetryInfo
		return status.New(codes.ResourceExhausted, textTooMuch)
	default:
		return status.New(codes.Unavailable, textUnable)
	}
}
