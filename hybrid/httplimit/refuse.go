package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/resilient-go/limiter/hybrid"
)

// Problem types of the draft on the RateLimit fields.
const (
	problemBase     = "https://iana.org/assignments/http-problem-types#"
	problemQuota    = problemBase + "quota-exceeded"
	problemDegraded = problemBase + "temporary-reduced-capacity"
)

// A problem is a problem-details object (RFC 9457).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Violated []string `json:"violated-policies,omitempty"`
}

// refuse answers a request that the limiter refused.
func (m *middleware) refuse(w http.ResponseWriter, r *http.Request, res hybrid.Result) {
	w.Header().Set("Retry-After", strconv.FormatInt(retrySeconds(res), 10))
	if m.onLimited != nil {
		m.onLimited(w, r, res)
		return
	}
	status, title, kind := m.status, "The quota is used up", problemQuota
	if res.Source == hybrid.SourceDegraded {
		status, title, kind = m.degradedStatus, "The capacity is reduced for a while", problemDegraded
	}
	switch {
	case m.problem:
		m.reply(w, status, problem{Type: kind, Title: title, Violated: []string{m.policyName(res.Limit)}})
	case m.bodySet:
		send(w, status, m.contentType, m.body)
	default:
		m.reply(w, status, problem{})
	}
}

// fail answers a request that could not be decided.
func (m *middleware) fail(w http.ResponseWriter, r *http.Request, err error, next http.Handler) {
	if ended := r.Context().Err(); ended != nil && errors.Is(err, ended) {
		// Nobody reads this, unless a deadline of our own side has passed: without a
		// status it would look like success.
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if m.onError != nil {
		m.onError(w, r, err, next)
		return
	}
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, ErrNoKey):
		m.warn(r, complaintRefused, "httplimit: a request without a key is refused")
		status = http.StatusBadRequest
	case errors.Is(err, hybrid.ErrExceedsBurst):
		// It can never pass: a status that clients do not retry.
		m.warn(r, complaintFailed, "httplimit: a request costs more than the burst")
		status = http.StatusRequestEntityTooLarge
	default:
		m.warn(r, complaintFailed, "httplimit: the limiter cannot decide", "error", err)
	}
	m.reply(w, status, problem{})
}

// reply sends a status with its text, or with a problem.
func (m *middleware) reply(w http.ResponseWriter, status int, p problem) {
	if !m.problem {
		send(w, status, "text/plain; charset=utf-8", []byte(statusText(status)+"\n"))
		return
	}
	p.Status = status
	if p.Type == "" {
		p.Type, p.Title = "about:blank", statusText(status)
	}
	body, err := json.Marshal(p)
	if err != nil { // strings and a number: it cannot be
		body = nil
	}
	send(w, status, "application/problem+json", body)
}

// send writes the one answer.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Del("Content-Length") // it was another body's
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left is no fault
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Status " + strconv.Itoa(status)
}
