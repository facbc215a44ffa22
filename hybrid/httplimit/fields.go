package httplimit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

const (
	fieldLimit  = "RateLimit"
	fieldPolicy = "RateLimit-Policy"

	legacyLimit     = "X-RateLimit-Limit"
	legacyRemaining = "X-RateLimit-Remaining"
	legacyReset     = "X-RateLimit-Reset"
)

// seconds is a duration in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d > time.Duration(s)*time.Second {
		s++
	}
	return max(0, s)
}

// retrySeconds is the Retry-After of a refusal. 0 would be an invitation to try
// again at once.
func retrySeconds(res hybrid.Result) int64 { return max(1, seconds(res.RetryAfter)) }

// A policy is the constant part of the fields, for one limit.
type policy struct {
	limit        hybrid.Limit
	quoted, text string // the name, and the member of RateLimit-Policy
}

// policyOf returns the policy of a limit, nil if it is no bucket:
// [hybrid.Unlimited], [hybrid.Blocked], and the zero limit of a fake.
func (m *middleware) policyOf(l hybrid.Limit) *policy {
	if l.Count() <= 0 || l.Period() <= 0 {
		return nil
	}
	if p := m.policy.Load(); p != nil && p.limit == l {
		return p
	}
	p := &policy{limit: l, quoted: quote(m.policyName(l))}
	q, w := quotaWindow(l)
	p.text = p.quoted + ";q=" + strconv.FormatInt(q, 10) + ";w=" + strconv.FormatInt(w, 10)
	if int64(l.Burst()) != q {
		p.text += ";limiter-burst=" + strconv.FormatInt(min(int64(l.Burst()), sfMax), 10)
	}
	m.policy.Store(p)
	return p
}

func (m *middleware) policyName(l hybrid.Limit) string {
	if m.nameSet {
		return m.name
	}
	return l.String()
}

// quotaWindow tells a limit as q per w whole seconds: exactly if at most 60
// periods are whole seconds, else by the period rounded up.
func quotaWindow(l hybrid.Limit) (q, w int64) {
	n, period := int64(l.Count()), l.Period()
	for k := int64(1); k <= 60; k++ {
		if period > math.MaxInt64/time.Duration(k) || n > sfMax/k {
			break
		}
		if whole := period * time.Duration(k); whole%time.Second == 0 {
			return n * k, int64(whole / time.Second)
		}
	}
	w = seconds(period)
	q = int64(math.Min(math.Floor(float64(n)*float64(w)/period.Seconds()+1e-9), sfMax))
	return q, w
}

// window is the time in which the rate makes up r tokens, or the next one.
func window(l hybrid.Limit, r int) int64 {
	s := float64(max(r, 1)) * l.Period().Seconds() / float64(l.Count())
	return int64(math.Min(math.Max(1, math.Ceil(s-1e-9)), sfMax))
}

// announce sets the fields that tell of a decision.
func (m *middleware) announce(h http.Header, key string, res hybrid.Result) {
	p := m.policyOf(res.Limit)
	if p == nil {
		return
	}
	if m.legacy != 0 {
		m.announceLegacy(h, res)
	}
	if m.noFields {
		return
	}
	t := window(res.Limit, res.Remaining)
	if !res.Allowed {
		t = retrySeconds(res)
	}
	r := min(max(0, int64(res.Remaining)), sfMax)
	pk := ""
	if m.partitionSet {
		mac := hmac.New(sha256.New, m.partitionKey)
		mac.Write([]byte(key))
		pk = ";pk=:" + base64.StdEncoding.EncodeToString(mac.Sum(nil)[:16]) + ":"
	}
	merge(h, fieldPolicy, p.text+pk)
	merge(h, fieldLimit, p.quoted+";r="+strconv.FormatInt(r, 10)+";t="+strconv.FormatInt(t, 10)+pk)
}

// merge adds a member to a list field. Of two members of one policy and partition
// the stricter stays. What cannot be read is replaced: it would spoil the rest.
func merge(h http.Header, field, text string) {
	lines := h.Values(field)
	if len(lines) == 0 {
		h.Set(field, text)
		return
	}
	before, err := parseList(lines)
	ours, _ := parseList([]string{text})
	if err != nil || len(ours) != 1 {
		h.Set(field, text)
		return
	}
	kept := make([]string, 0, len(before)+1)
	for _, b := range before {
		if !b.samePolicy(ours[0]) {
			kept = append(kept, b.text)
			continue
		}
		if b.stricter(ours[0]) {
			ours[0] = b
		}
	}
	h.Set(field, strings.Join(append(kept, ours[0].text), ", "))
}

// announceLegacy sets the X-RateLimit fields, unless those that are there are
// stricter.
func (m *middleware) announceLegacy(h http.Header, res hybrid.Result) {
	reset := seconds(res.ResetAfter)
	if m.legacy == ResetUnix {
		now := time.Now()
		reset = now.Unix() + seconds(min(res.ResetAfter, math.MaxInt64-time.Second)+time.Duration(now.Nanosecond()))
	}
	if was, err := strconv.Atoi(h.Get(legacyRemaining)); err == nil {
		wasReset, _ := strconv.ParseInt(h.Get(legacyReset), 10, 64)
		if was < res.Remaining || was == res.Remaining && wasReset >= reset {
			return
		}
	}
	h.Set(legacyLimit, strconv.Itoa(res.Limit.Burst()))
	h.Set(legacyRemaining, strconv.Itoa(max(0, res.Remaining)))
	h.Set(legacyReset, strconv.FormatInt(reset, 10))
}
