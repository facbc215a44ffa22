package arch

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The repository that the rules are tried on has two floors, one package of test
// help and two libraries.
var (
	tryFloors = []row{
		{path: "low", floor: 0, production: true},
		{path: "left", floor: 1, uses: []string{"low"}, production: true},
		{path: "right", floor: 1, production: true},
		{path: "top", floor: 2, uses: []string{"left"}, production: true},
		{path: "examples/...", floor: 4, uses: []string{"below"}, optional: true},
		{path: "bench/...", floor: 4, uses: []string{"below", "internal/help"}, optional: true},
		{path: "internal/help", testHelp: true, uses: []string{"low"}},
	}
	tryLibraries = []library{
		{path: "example.org/redis/v9", owners: []string{"left"}, core: true},
		{path: "example.org/quick"},
	}
	tryBans = []ban{
		{"testing/...", "for tests"},
		{modulePath + "/internal/help/...", "for tests"},
	}
)

// in makes import paths of folders of the repository.
func in(dirs ...string) []string {
	for i, d := range dirs {
		dirs[i] = modulePath + "/" + d
	}
	return dirs
}

// graphOf makes a graph of the repository's packages, by folder.
func graphOf(packages map[string]pkg) graph {
	g := graph{}
	for dir, p := range packages {
		g[modulePath+"/"+dir] = p
	}
	return g
}

// compare checks that the faults are the wanted ones, each named by a part of it.
func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	left := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(left, func(f string) bool { return strings.Contains(f, w) })
		if i < 0 {
			t.Errorf("no fault says %q", w)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, f := range left {
		t.Errorf("not a fault: %s", f)
	}
}

func TestFloorFaults(t *testing.T) {
	tests := map[string]struct {
		packages map[string]pkg
		want     []string
	}{
		"sound": {packages: map[string]pkg{
			"low":  {imports: []string{"fmt"}, testImports: in("internal/help")},
			"left": {imports: in("low"), testImports: in("left", "low", "internal/help")},
			// A test may use any lower floor.
			"top":                 {imports: in("left"), testImports: in("low", "right")},
			"examples/a":          {imports: in("top", "right", "examples/a/internal")},
			"examples/a/internal": {imports: in("low")},
			"bench":               {imports: in("internal/help", "bench/load")},
			"bench/load":          {},
			"internal/help":       {imports: in("low"), testImports: in("top")},
		}},
		"no floor":                {map[string]pkg{"new": {}}, []string{"new has no floor"}},
		"no floor below a row":    {map[string]pkg{"top/new": {}}, []string{"top/new has no floor"}},
		"up":                      {map[string]pkg{"low": {imports: in("top")}}, []string{"low imports top: floor 2 is above floor 0"}},
		"up in a test":            {map[string]pkg{"low": {testImports: in("left")}}, []string{"a test of low imports left"}},
		"sibling":                 {map[string]pkg{"left": {imports: in("right")}}, []string{"do not know each other"}},
		"sibling in a test":       {map[string]pkg{"left": {testImports: in("right")}}, []string{"do not know each other"}},
		"sibling examples":        {map[string]pkg{"examples/a": {imports: in("examples/b")}, "examples/b": {}}, []string{"do not know each other"}},
		"down, not named":         {map[string]pkg{"right": {imports: in("low")}}, []string{"does not name it"}},
		"test help in production": {map[string]pkg{"top": {imports: in("internal/help")}}, []string{"it is for tests"}},
		"test help in an example": {map[string]pkg{"examples/a": {imports: in("internal/help")}}, []string{"it is for tests"}},
		"test help uses too much": {map[string]pkg{"internal/help": {imports: in("top")}}, []string{"test help does not use it"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compare(t, floorFaults(tryFloors, graphOf(test.packages)), test.want...)
		})
	}
	t.Run("no floor for the root", func(t *testing.T) {
		compare(t, floorFaults(tryFloors, graph{modulePath: {}}), ". has no floor")
	})
}

func TestTableFaults(t *testing.T) {
	compare(t, tableFaults(tryFloors, tryLibraries))
	compare(t,
		tableFaults([]row{
			{path: "low", floor: 0, production: true},
			{path: "low", floor: 0, production: true},
			{path: "a", floor: 1, uses: []string{"gone"}},
			{path: "b", floor: 1, uses: []string{"a"}},
			{path: "c", floor: 1, uses: []string{"help"}, production: true},
			{path: "help", testHelp: true},
		}, []library{
			{path: "x", owners: []string{"low", "c"}, core: true},
			{path: "y", owners: []string{"help"}, core: true},
			{path: "z", owners: []string{"low"}},
			{path: "t2"},
			{path: "t3"},
			{path: "t4"},
			{path: "t5"},
			{path: "t6"},
		}),
		"low has two rows",
		"a uses gone, which has no row",
		"b on floor 1 uses a on floor 1",
		"c is production and uses help",
		"x has more than one owner",
		"y is owned by help, which is no production package",
		"z is not of the core",
		"6 libraries stand beside the core",
	)
}

func TestModuleFaults(t *testing.T) {
	compare(t, moduleFaults(map[string]string{".": modulePath, "bench": modulePath + "/bench"}))
	compare(t, moduleFaults(map[string]string{".": "example.org/other", "bench": "example.org/bench"}),
		"the module in . is example.org/other", "the module in bench is example.org/bench")
}

func TestRequirementFaults(t *testing.T) {
	both := []string{"example.org/redis/v9", "example.org/quick"}
	compare(t, requirementFaults(tryLibraries, both, true))
	compare(t, requirementFaults(tryLibraries, nil, false))
	compare(t, requirementFaults(tryLibraries, append(both, "example.org/extra"), false),
		"requires example.org/extra, which is not in libraries")
	compare(t, requirementFaults(tryLibraries, both[:1], true),
		"example.org/quick is in libraries and no direct requirement")
}

func TestMissingRows(t *testing.T) {
	g := graphOf(map[string]pkg{"low": {}, "left": {}, "top": {}, "internal/help": {}})
	if got := missingRows(tryFloors, g); !slices.Equal(got, []string{"right"}) {
		t.Errorf("missing: %v, want right", got)
	}
}

func TestOwnerFaults(t *testing.T) {
	tests := map[string]struct {
		packages map[string]pkg
		want     []string
	}{
		"sound": {packages: map[string]pkg{
			"left":       {imports: []string{"example.org/redis/v9/auth", "net/http"}, testImports: []string{"example.org/quick"}},
			"examples/a": {imports: []string{"example.org/other"}},
		}},
		"not an owner": {
			map[string]pkg{"right": {imports: []string{"example.org/redis/v9"}}},
			[]string{"right imports example.org/redis/v9, which only left may"},
		},
		"not listed": {
			map[string]pkg{"left": {imports: []string{"example.org/redis/v10"}}},
			[]string{"example.org/redis/v10, which is not in libraries"},
		},
		"for tests only": {
			map[string]pkg{"left": {imports: []string{"example.org/quick/gen"}}},
			[]string{"it is for tests only"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compare(t, ownerFaults(tryFloors, tryLibraries, graphOf(test.packages)), test.want...)
		})
	}
}

func TestReachFaults(t *testing.T) {
	g := graphOf(map[string]pkg{
		"low":           {imports: []string{"fmt"}, testImports: []string{"testing"}},
		"left":          {imports: []string{"example.org/redis/v9"}},
		"right":         {imports: in("internal/help")},
		"examples/a":    {imports: []string{"testing"}},
		"internal/help": {imports: []string{"testing/iotest"}},
	})
	g["example.org/redis/v9"] = pkg{imports: []string{"example.org/redis/v9/x"}}
	g["example.org/redis/v9/x"] = pkg{imports: []string{"testing", "example.org/redis/v9"}}
	compare(t, reachFaults(tryFloors, tryBans, g),
		"left reaches testing (for tests): "+modulePath+"/left > example.org/redis/v9 > example.org/redis/v9/x > testing",
		"right reaches "+modulePath+"/internal/help",
	)
}

func TestHygieneFaults(t *testing.T) {
	const head = "package x\n\nimport (\n\t\"testing\"\n\t\"testing/synctest\"\n\t\"time\"\n)\n"
	const prelude = "-- the prelude\nlocal function clock()\n return redis.call('TIME')\nend\n"
	tests := map[string]struct {
		files   []file
		excused []exception
		want    []string
	}{
		"no marker in tests, none in words": {files: []file{
			{"low/a.go", "package low // AUTODONE\n"},
			{"low/a_test.go", "package low // TODO\n"},
		}},
		"marker": {
			files: []file{{"low/a.go", "package low\n// TODO: more\n"}, {"top/b.go", "package top\n\n// FIXME\n"}},
			want:  []string{"low/a.go:2: TODO", "top/b.go:3: FIXME"},
		},
		"context.TODO": {
			files: []file{{"low/a.go", "package low\nimport \"context\"\nvar c = context.TODO()\n"}},
			want:  []string{"low/a.go:3: TODO"},
		},
		"production sleeps": {
			files: []file{{"low/a.go", "package low\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }\n"}},
			want:  []string{"low/a.go:3: time.Sleep"},
		},
		"examples sleep": {
			files: []file{{"examples/a/a.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"}},
		},
		"skips": {
			files: []file{{"low/a_test.go", head + "func TestA(t *testing.T) {\n t.Skip(\"x\")\n t.Skipf(\"x\")\n t.SkipNow()\n}\n"}},
			want:  []string{"low/a_test.go:9: Skip", "low/a_test.go:10: Skipf", "low/a_test.go:11: SkipNow"},
		},
		"test help skips": {
			files: []file{{"internal/help/h.go", "package help\nfunc F(t interface{ Skip(...any) }) { t.Skip() }\n"}},
			want:  []string{"internal/help/h.go:2: Skip"},
		},
		"a sleep on real time": {
			files: []file{{"low/a_test.go", head + "func TestA(t *testing.T) {\n" +
				" t.Run(\"x\", func(t *testing.T) { time.Sleep(1) })\n" +
				" synctest.Test(t, func(t *testing.T) {})\n time.Sleep(1)\n}\n" +
				"var sleep = time.Sleep\n"}},
			want: []string{"low/a_test.go:9: time.Sleep", "low/a_test.go:11: time.Sleep", "low/a_test.go:13: time.Sleep"},
		},
		"sleeps on fake time": {
			files: []file{
				{"low/a_test.go", head + "func TestA(t *testing.T) {\n" +
					" synctest.Test(t, func(t *testing.T) { func() { time.Sleep(1) }() })\n" +
					" synctest.Test(t, named)\n bubble(t, func(t *testing.T) { time.Sleep(1) })\n}\n" +
					"func named(t *testing.T) { time.Sleep(1) }\n" +
					"func pass() { time.Sleep(1); synctest.Wait() }\n"},
				{"low/b_test.go", head + "func bubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }\n"},
			},
		},
		"a bubble of another folder": {
			files: []file{
				{"low/a_test.go", head + "func TestA(t *testing.T) {\n bubble(t, func(t *testing.T) { time.Sleep(1) })\n}\n"},
				{"left/b_test.go", head + "func bubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }\n"},
			},
			want: []string{"low/a_test.go:9: time.Sleep"},
		},
		"hidden tests": {
			files: []file{
				{"low/a_test.go", "//go:build slow\n\npackage low\n\nfunc TestA() {}\n"},
				{"low/race_test.go", "//go:build race\n\npackage low\n\nconst race = true\n"},
			},
			want: []string{"low/a_test.go:1: tests behind a build tag"},
		},
		"not Go": {
			files: []file{{"low/a.go", "pack low\n"}},
			want:  []string{"low/a.go:1:1: expected 'package'"},
		},
		"scripts": {files: []file{
			{"lua/prelude.lua", prelude},
			{"lua/a.lua", "-- a: tostring( and pcall; TIME is read by clock()\nlocal now = clock()\n"},
		}},
		"a script alone": {files: []file{{"lua/a.lua", "-- a\nredis.call('TIME')\n"}}},
		"bad words": {
			files: []file{{"lua/a.lua", "-- a\nlocal t = redis.call('TIME')\nlocal s = tostring (t)\n" +
				"redis.pcall('GET', s)\nredis.log(1, '--') -- TODO\n"}},
			want: []string{
				"lua/a.lua:3: tostring(", "lua/a.lua:4: pcall", "lua/a.lua:5: redis.log", "lua/a.lua:5: TODO",
			},
		},
		"no header":      {files: []file{{"lua/a.lua", "redis.call('TIME')\n"}}, want: []string{"lua/a.lua:1: no comment"}},
		"no clock":       {files: []file{{"lua/a.lua", "-- redis.call('TIME')\n--[[\n'TIME'\n]]\n"}}, want: []string{"TIME stands 0 times"}},
		"two clocks":     {files: []file{{"lua/a.lua", "-- a\nredis.call('TIME') redis.call(\"time\")\n"}}, want: []string{"TIME stands 2 times"}},
		"clock not used": {files: []file{{"lua/prelude.lua", prelude}, {"lua/a.lua", "-- a\n"}}, want: []string{"clock is called 0 times"}},
		"clock used twice": {
			files: []file{{"lua/prelude.lua", prelude}, {"lua/a.lua", "-- a\nlocal a, b = clock(), clock ()\n"}},
			want:  []string{"clock is called 2 times"},
		},
		"clock passed by": {
			files: []file{{"lua/prelude.lua", prelude}, {"lua/a.lua", "-- a\nlocal a, b = clock(), redis.call('TIME')\n"}},
			want:  []string{"TIME stands 2 times"},
		},
		"excused": {
			files:   []file{{"low/a.go", "package low // TODO\n"}},
			excused: []exception{{ruleMarker, "low/a.go", "it is being tried"}},
		},
		"excused for nothing": {
			files:   []file{{"low/a.go", "package low\n"}},
			excused: []exception{{ruleMarker, "low/a.go", "it was tried"}, {"typo", "low/a.go", ""}},
			want:    []string{"marker in low/a.go excuses nothing", "typo in low/a.go excuses nothing", "typo in low/a.go has no reason"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compare(t, hygieneFaults(tryFloors, []string{"lua/prelude.lua"}, test.excused, test.files), test.want...)
		})
	}
}

// The reader sees files of other systems and tags, and nested modules. It passes
// by test data, hidden folders and the lint tools.
func TestRead(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                "// The root.\nmodule " + modulePath + "\n\ngo 1.26.0\n",
		"low/a.go":              "package low\n\nimport \"errors\"\n\nvar _ = errors.New\n",
		"low/b.go":              "//go:build never\n\npackage low\n\nimport \"testing\"\n",
		"low/c_plan9.go":        "package low\n\nimport \"os\"\n",
		"low/a_test.go":         "package low_test\n\nimport \"example.org/quick\"\n",
		"low/s.lua":             "-- s\n",
		"low/testdata/bad.go":   "not Go",
		".hidden/bad.go":        "not Go",
		"internal/tools/go.mod": "module other\n",
		"contrib/x/go.mod":      "module " + modulePath + "/contrib/x\n\ngo 1.26.0\n",
		"contrib/x/x.go":        "package x\n\nimport \"bufio\"\n\nvar _ bufio.Reader\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := own(r.graph), in("contrib/x", "low"); !slices.Equal(got, want) {
		t.Errorf("packages: %v, want %v", got, want)
	}
	low := r.graph[modulePath+"/low"]
	if want := []string{"errors", "testing", "os"}; !slices.Equal(low.imports, want) {
		t.Errorf("imports: %v, want %v", low.imports, want)
	}
	if want := []string{"example.org/quick"}; !slices.Equal(low.testImports, want) {
		t.Errorf("imports of tests: %v, want %v", low.testImports, want)
	}
	for _, reached := range []string{"internal/reflectlite", "bytes"} {
		if _, ok := r.graph[reached]; !ok {
			t.Errorf("%s is reached and not in the graph", reached)
		}
	}
	if want := map[string]string{".": modulePath, "contrib/x": modulePath + "/contrib/x"}; !maps.Equal(r.modules, want) {
		t.Errorf("modules: %v, want %v", r.modules, want)
	}
	compare(t, reachFaults(tryFloors, tryBans, r.graph), "low reaches testing")
}
