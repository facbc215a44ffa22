package arch

// modulePath is the path of the root module. Nested modules lie below it, each
// under the path of its folder.
const modulePath = "github.com/resilient-go/limiter"

// A row gives a package its floor. Imports point down only, and packages on one
// floor do not know each other.
type row struct {
	// path is the package's folder. "x/..." stands for x and every package below
	// it; each folder in x is then one unit, and units are siblings.
	path string
	// floor counts from 0. It has no meaning for test help.
	floor int
	// uses lists the repository's packages that non-test files may import. The
	// entry "below" stands for every package on a lower floor.
	uses []string
	// testsUse lists the repository's packages that its tests may import besides,
	// although they lie above: where something is proved of both together.
	testsUse []string
	// production marks what users link into their programs.
	production bool
	// testHelp marks packages that exist for tests. Any test may import them.
	testHelp bool
	// optional marks a row whose package may be missing.
	optional bool
}

// floors is the map of the repository. A package without a row is a fault.
var floors = []row{
	{path: "lua", floor: 0, production: true, testsUse: []string{"local"}}, // scripts against real leases
	{path: "local", floor: 1, production: true},
	{path: "breaker", floor: 1, production: true},
	{path: "remote", floor: 1, uses: []string{"lua"}, production: true},
	{path: "internal/inside", floor: 2, uses: []string{"remote"}, production: true}, // the simulator's door into hybrid
	{path: "hybrid", floor: 3, uses: []string{"internal/inside", "local", "remote", "breaker", "lua"}, production: true},
	{path: "hybrid/httplimit", floor: 4, uses: []string{"hybrid"}, production: true},
	{path: "examples/simulate", floor: 5, uses: []string{"hybrid", "internal/sim"}},
	// Servers that break on purpose.
	{path: "examples/cluster", floor: 5, uses: []string{"below", "internal/redistest"}},
	{path: "examples/outage", floor: 5, uses: []string{"below", "internal/redistest"}},
	{path: "examples/playground", floor: 5, uses: []string{"below", "internal/redistest"}},
	{path: "examples/grpc", floor: 6, uses: []string{"below"}},       // stands on contrib
	{path: "examples/prometheus", floor: 6, uses: []string{"below"}}, // likewise
	{path: "examples/...", floor: 5, uses: []string{"below"}, optional: true},
	{path: "contrib/...", floor: 5, uses: []string{"below"}, optional: true},
	{path: "bench/load", floor: 4, optional: true},
	{path: "bench/server", floor: 4, optional: true},
	{path: "bench/peers", floor: 5, uses: []string{"below"}, optional: true},
	{path: "bench/...", floor: 6, uses: []string{"below"}, optional: true},
	{path: "internal/redistest", testHelp: true, uses: []string{"lua"}},
	{path: "internal/luahost", testHelp: true, uses: []string{"lua"}},
	{path: "internal/sim", testHelp: true, uses: []string{"internal/luahost", "internal/inside", "hybrid", "remote", "lua"}},
	{path: "internal/arch", testHelp: true},
	{path: "internal/transcript", testHelp: true}, // compares what examples print with their READMEs
	{path: "internal/e2e", testHelp: true},
	{path: "docs", testHelp: true}, // tests of the documents
}

// A library is a third-party module that the root go.mod may require directly.
type library struct {
	path string
	// owners are the production packages that import it in non-test files. None:
	// it is for tests (and examples) only.
	owners []string
	// core marks the modules that the project is built on. At most maxTestOnly
	// others may stand beside them.
	core bool
	// why is needed for more than one owner.
	why string
}

const maxTestOnly = 5

// libraries is the whole list of the root module's direct dependencies.
var libraries = []library{
	{
		path: "github.com/redis/go-redis/v9", owners: []string{"remote", "hybrid"}, core: true,
		why: "remote makes the calls; hybrid's constructor takes the user's redis.UniversalClient",
	},
	{path: "github.com/sony/gobreaker/v2", owners: []string{"breaker"}, core: true},
	{path: "golang.org/x/time", owners: []string{"local"}, core: true},
	{path: "github.com/alicebob/miniredis/v2", core: true},
	{path: "github.com/yuin/gopher-lua"},
	{path: "go.uber.org/goleak"},
	{path: "pgregory.net/rapid"},
}

// A ban names a package that production code must not reach, directly or through
// others. "x/..." stands for x and every package below it.
type ban struct{ path, why string }

var bans = []ban{
	{"testing/...", "it registers flags and grows every user's program"},
	{"net/http/httptest", "it is for tests"},
	{"github.com/alicebob/miniredis/v2/...", "it is a Redis for tests"},
	{"github.com/yuin/gopher-lua/...", "it is for tests"},
	{"go.uber.org/goleak/...", "it is for tests"},
	{"pgregory.net/rapid/...", "it is for tests"},
	{modulePath + "/internal/redistest/...", "it is for tests"},
	{modulePath + "/internal/luahost/...", "it is for tests"},
	{modulePath + "/internal/arch/...", "it is for tests"},
}

// luaPreludes are the Lua texts that are put in front of every script. TIME is
// called in one place of a script with its preludes. If that is a function of a
// prelude, each script calls the function once; luaClock is its name.
var luaPreludes = []string{"lua/bucket.lua", "lua/window.lua", "lua/tiers.lua"}

const luaClock = "clock"

// An exception lets one file break one rule. One that no longer excuses anything
// is a fault.
type exception struct {
	// rule is one of the rule constants in hygiene_test.go.
	rule, file, why string
}

var exceptions = []exception{
	{ruleProdSleep, "remote/client.go", "Close takes no context and polls for 20 ms at most"},
	{ruleSleep, "hybrid/standing_test.go", "it is called in a bubble"},
	{ruleSleep, "internal/redistest/mini.go", "it sleeps in a bubble, and fails elsewhere"},
	{ruleSleep, "internal/redistest/ports.go", "it polls a redis-server process, which lives in real time"},
	{ruleSleep, "internal/redistest/sentinel_test.go", "it polls during a failover of real processes"},
}
