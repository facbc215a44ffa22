package lua_test

import (
	"fmt"
	"strings"

	"github.com/resilient-go/limiter/lua"
)

// The scripts as Redis gets them.
func ExampleScript() {
	for _, s := range []*lua.Script{lua.TokenBucket.Acquire, lua.TokenBucket.Peek, lua.TokenBucket.Reset, lua.Announce} {
		fmt.Println(s.Name(), len(s.SHA()), strings.HasPrefix(s.Text(), "--"))
	}
	// Output:
	// acquire 40 true
	// peek 40 true
	// reset 40 true
	// announce 40 true
}
