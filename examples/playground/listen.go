package main

import "encoding/json"

// A message is one of the stream that a page listens to.
type message struct {
	event string
	data  []byte
}

// A listener gets messages. Its channel is closed when it is too slow, or when the
// engine ends.
type listener struct{ messages chan message }

// mostBehind is how many messages a page may be behind.
const mostBehind = 100

// A History is what a page gets first.
type History struct {
	Frames []Frame `json:"frames"`
	Lines  []Line  `json:"lines"`
}

// listen begins with the state and the history.
func (e *engine) listen() *listener {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &listener{make(chan message, mostBehind)}
	l.messages <- pack("state", e.state())
	l.messages <- pack("history", History{e.frames, e.lines})
	e.listeners[l] = struct{}{}
	return l
}

// leave ends a listener. It may have been dismissed.
func (e *engine) leave(l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dismiss(l)
}

// send tells all listeners; the lock is held.
func (e *engine) send(event string, v any) {
	if len(e.listeners) == 0 {
		return
	}
	m := pack(event, v)
	for l := range e.listeners {
		select {
		case l.messages <- m:
		default:
			e.dismiss(l) // the page comes again by itself
		}
	}
}

// dismiss closes a listener; the lock is held.
func (e *engine) dismiss(l *listener) {
	if _, ok := e.listeners[l]; ok {
		delete(e.listeners, l)
		close(l.messages)
	}
}

func pack(event string, v any) message {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // no value of ours fails
	}
	return message{event, data}
}
