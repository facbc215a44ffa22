package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
)

// assets is the page. All it needs is here: nothing is loaded from elsewhere.
//
//go:embed web
var assets embed.FS

// handler serves the page and what it asks for.
func (e *engine) handler() http.Handler {
	web, err := fs.Sub(assets, "web")
	if err != nil {
		panic(err) // the path is a constant
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(web))
	mux.HandleFunc("GET /events", e.stream)
	mux.HandleFunc("POST /settings", e.postSettings)
	mux.HandleFunc("POST /do/{action}", e.postAction)
	mux.HandleFunc("POST /instances/{n}/{what}", e.postCut)
	return guard(mux)
}

// guard keeps other sites' pages out: they could press the buttons in the name of
// the browser's user.
func guard(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A name that somebody else has pointed at this machine is not ours.
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if net.ParseIP(host) == nil && host != "localhost" {
			http.Error(w, "use localhost or an address", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// stream sends server-sent events until the page leaves.
func (e *engine) stream(w http.ResponseWriter, r *http.Request) {
	l := e.listen()
	defer e.leave(l)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case m, ok := <-l.messages:
			if !ok {
				return
			}
			if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", m.event, m.data); err != nil {
				return
			}
			if err := out.Flush(); err != nil {
				return
			}
		}
	}
}

func (e *engine) postSettings(w http.ResponseWriter, r *http.Request) {
	s, err := e.now().with(http.MaxBytesReader(w, r.Body, 1<<12))
	if err == nil {
		err = e.apply(s)
	}
	answer(w, err)
}

func (e *engine) postAction(w http.ResponseWriter, r *http.Request) {
	answer(w, e.do(action(r.PathValue("action"))))
}

func (e *engine) postCut(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	what := r.PathValue("what")
	switch {
	case err != nil || what != "cut" && what != "mend":
		err = fmt.Errorf("there is no %s", r.URL.Path)
	default:
		err = e.cut(n-1, what == "cut")
	}
	answer(w, err)
}

// answer is JSON: an error's text, or an empty object.
func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	body := map[string]string{}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		body["error"] = err.Error()
	}
	_ = json.NewEncoder(w).Encode(body) // the page may have left
}
