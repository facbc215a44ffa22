package main

// A condition is how Redis is, as far as the buttons go.
type condition string

const (
	running    condition = "running"
	frozen     condition = "frozen"
	killed     condition = "killed"
	failedOver condition = "failed over"
)

// after is the condition that an action leads to.
func (c condition) after(a action) condition {
	switch a {
	case freeze:
		return frozen
	case kill:
		return killed
	case failOver:
		return failedOver
	}
	return running
}

// cannot says why an action makes no sense now, empty if it does.
func (c condition) cannot(a action) string {
	switch {
	case a == freeze && c != running, a == failOver && c == failedOver:
		return "Redis is " + string(c) + "."
	case a == thaw && c != frozen:
		return "Redis is not frozen."
	case a == kill && c == killed:
		return "Redis is killed."
	}
	return ""
}

// A State is what the page shows besides the frames.
type State struct {
	Settings Settings          `json:"settings"`
	Where    string            `json:"where"` // what Redis is
	Redis    condition         `json:"redis"`
	Cannot   map[action]string `json:"cannot"` // why an action is not there
}

// state is the current one; the lock is held.
func (e *engine) state() State {
	s := State{Settings: e.settings, Where: e.redis.where(), Redis: e.condition, Cannot: map[action]string{}}
	for _, a := range actions {
		if why := e.cannot(a); why != "" {
			s.Cannot[a] = why
		}
	}
	return s
}

// cannot says why there is no such action here and now; the lock is held.
func (e *engine) cannot(a action) string {
	if why := e.redis.cannot(a); why != "" {
		return why
	}
	return e.condition.cannot(a)
}
