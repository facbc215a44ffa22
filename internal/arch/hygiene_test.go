package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The rules on files, by the names that exceptions use.
const (
	ruleMarker    = "marker"     // no work marker is left in production code
	ruleProdSleep = "prod-sleep" // production code does not sleep
	ruleSkip      = "skip"       // no test skips
	ruleSleep     = "sleep"      // tests sleep on fake time only
	ruleTag       = "tag"        // no test hides behind a build tag
	ruleLuaHeader = "lua-header" // each script starts with a comment
	ruleLuaWord   = "lua-word"   // scripts use no word of luaWords
	ruleLuaTime   = "lua-time"   // each script reads the clock once
)

// goRules are the rules on one folder's Go files.
var goRules = []struct {
	name    string
	applies func(rows []row, f file) bool
	find    func(fs []goFile) []finding
}{
	{ruleMarker, isProduction, markers},
	{ruleProdSleep, isProduction, prodSleeps},
	{ruleSkip, isTesting, skips},
	{ruleSleep, isTesting, sleeps},
	{ruleTag, isTesting, hidden},
}

// luaWords may not appear in the code of a script.
var luaWords = []struct{ word, why string }{
	{"tostring(", "it rounds numbers to 14 digits; use string.format with %.17g or %d"},
	{"pcall", "a script must not go on after an error"},
	{"redis.log", "it writes to the server's log"},
}

// A file is a Go or Lua file, by its path from the root of the repository.
type file struct{ path, text string }

// A goFile is a parsed Go file.
type goFile struct {
	file
	fset *token.FileSet
	ast  *ast.File
}

// A finding is a broken rule at one place.
type finding struct {
	file string
	line int
	text string
}

// isTesting tells whether a Go file is part of tests: a test file, or any file of
// test help.
func isTesting(rows []row, f file) bool {
	r, ok := rowOf(rows, path.Dir(f.path))
	return strings.HasSuffix(f.path, "_test.go") || ok && r.testHelp
}

// isProduction tells whether a file is a non-test file of a production package.
func isProduction(rows []row, f file) bool {
	r, ok := rowOf(rows, path.Dir(f.path))
	return ok && r.production && !strings.HasSuffix(f.path, "_test.go")
}

// hygieneFaults applies every rule on files and takes out the excused findings.
func hygieneFaults(rows []row, preludes []string, excused []exception, files []file) []string {
	var faults []string
	found := map[string][]finding{}
	folders := map[string][]goFile{}
	var scripts []file
	for _, f := range files {
		if path.Ext(f.path) == ".lua" {
			scripts = append(scripts, f)
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		dir := path.Dir(f.path)
		folders[dir] = append(folders[dir], goFile{f, fset, parsed})
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		for _, rule := range goRules {
			var fs []goFile
			for _, f := range folders[dir] {
				if rule.applies(rows, f.file) {
					fs = append(fs, f)
				}
			}
			found[rule.name] = append(found[rule.name], rule.find(fs)...)
		}
	}
	for name, findings := range luaFindings(preludes, scripts) {
		found[name] = append(found[name], findings...)
	}
	for _, e := range excused {
		if e.why == "" {
			faults = append(faults, fmt.Sprintf("the exception for %s in %s has no reason", e.rule, e.file))
		}
		before := len(found[e.rule])
		found[e.rule] = slices.DeleteFunc(found[e.rule], func(f finding) bool { return f.file == e.file })
		if len(found[e.rule]) == before {
			faults = append(faults, fmt.Sprintf("the exception for %s in %s excuses nothing: remove it", e.rule, e.file))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for _, f := range found[name] {
			faults = append(faults, fmt.Sprintf("%s:%d: %s [%s]", f.file, f.line, f.text, name))
		}
	}
	return faults
}

var marker = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// markers finds work markers, context.TODO among them.
func markers(fs []goFile) []finding {
	var found []finding
	for _, f := range fs {
		for i, line := range strings.Split(f.text, "\n") {
			if word := marker.FindString(line); word != "" {
				found = append(found, finding{f.path, i + 1, word + " in production code"})
			}
		}
	}
	return found
}

// skips finds calls that skip a test.
func skips(fs []goFile) []finding {
	var found []finding
	for _, f := range fs {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
					switch sel.Sel.Name {
					case "Skip", "Skipf", "SkipNow":
						found = append(found, f.at(call, sel.Sel.Name+": tests fail or pass, none is skipped"))
					}
				}
			}
			return true
		})
	}
	return found
}

// hidden finds files with tests that are built under some tags only.
func hidden(fs []goFile) []finding {
	var found []finding
	for _, f := range fs {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if c.Pos() < f.ast.Package && strings.HasPrefix(c.Text, "//go:build ") && f.hasTests() {
					found = append(found, f.at(c, "tests behind a build tag are not run"))
				}
			}
		}
	}
	return found
}

// prodSleeps finds uses of time.Sleep, which no context can end.
func prodSleeps(fs []goFile) []finding {
	var found []finding
	for _, f := range fs {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if f.names(n, "time", "Sleep") {
				found = append(found, f.at(n, "time.Sleep in production code; wait on a timer and the context"))
			}
			return true
		})
	}
	return found
}

// sleeps finds uses of time.Sleep that are not seen to run on fake time. A use
// runs on fake time if it stands
//
//   - in a function literal that is passed to synctest.Test, or to a function of
//     the folder that calls synctest.Test itself;
//   - in a function that is passed so by name;
//   - in a function that also calls synctest.Wait, which works there only.
func sleeps(fs []goFile) []finding {
	bubbles := map[string]bool{} // functions of the folder that call synctest.Test
	for _, f := range fs {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.contains(fn, "testing/synctest", "Test") {
				bubbles[fn.Name.Name] = true
			}
		}
	}
	isBubble := func(f goFile, call *ast.CallExpr) bool {
		id, ok := call.Fun.(*ast.Ident)
		return f.names(call.Fun, "testing/synctest", "Test") || ok && bubbles[id.Name]
	}
	passed := map[string]bool{} // functions that are passed by name
	for _, f := range fs {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isBubble(f, call) {
				for _, arg := range call.Args {
					if id, ok := arg.(*ast.Ident); ok {
						passed[id.Name] = true
					}
				}
			}
			return true
		})
	}
	var found []finding
	for _, f := range fs {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok &&
				(passed[fn.Name.Name] || f.contains(fn, "testing/synctest", "Wait")) {
				continue
			}
			fake := map[ast.Node]bool{}
			ast.Inspect(decl, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isBubble(f, call) {
					for _, arg := range call.Args {
						fake[arg] = true
					}
				}
				if lit, ok := n.(*ast.FuncLit); ok && fake[lit] {
					return false
				}
				if f.names(n, "time", "Sleep") {
					found = append(found, f.at(n, "time.Sleep on real time; sleep in synctest.Test, "+
						"or call synctest.Wait in the same function"))
				}
				return true
			})
		}
	}
	return found
}

// at makes a finding at a node.
func (f goFile) at(n ast.Node, text string) finding {
	return finding{f.path, f.fset.Position(n.Pos()).Line, text}
}

// names tells whether a node is the name of an imported package's object.
func (f goFile) names(n ast.Node, imported, object string) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != object {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == f.importName(imported)
}

// contains tells whether an imported package's object is named in a node.
func (f goFile) contains(n ast.Node, imported, object string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		found = found || f.names(n, imported, object)
		return !found
	})
	return found
}

// importName is the file's name for a package, "" if it does not import it.
func (f goFile) importName(imported string) string {
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == imported {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(imported)
		}
	}
	return ""
}

// hasTests tells whether a file declares tests, benchmarks, fuzz functions or
// examples.
func (f goFile) hasTests() bool {
	return slices.ContainsFunc(f.ast.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Recv == nil && slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz", "Example"},
			func(prefix string) bool { return strings.HasPrefix(fn.Name.Name, prefix) })
	})
}

var (
	luaTime      = regexp.MustCompile(`(?i)['"]TIME['"]`)
	luaClockCall = regexp.MustCompile(`(function\s+)?\b` + luaClock + `\s*\(`)
)

// clockUse counts where a Lua text without comments names TIME, and where it
// calls and defines the function luaClock.
func clockUse(code string) (times, calls, defs int) {
	for _, m := range luaClockCall.FindAllStringSubmatch(code, -1) {
		if m[1] != "" {
			defs++
		} else {
			calls++
		}
	}
	return len(luaTime.FindAllString(code, -1)), calls, defs
}

// luaFindings applies the rules on Lua files.
func luaFindings(preludes []string, scripts []file) map[string][]finding {
	found := map[string][]finding{}
	add := func(rule string, f file, line int, text string) {
		found[rule] = append(found[rule], finding{f.path, line, text})
	}
	prelude := "" // the code of all preludes
	for _, f := range scripts {
		if slices.Contains(preludes, f.path) {
			prelude += stripLua(f.text) + "\n"
		}
	}
	for _, f := range scripts {
		code := stripLua(f.text)
		if !strings.HasPrefix(strings.TrimSpace(f.text), "--") {
			add(ruleLuaHeader, f, 1, "no comment at the top says what the script does")
		}
		for i, line := range strings.Split(f.text, "\n") {
			if word := marker.FindString(line); word != "" {
				add(ruleMarker, f, i+1, word+" in production code")
			}
		}
		for i, line := range strings.Split(code, "\n") {
			for _, w := range luaWords {
				if strings.Contains(strings.ReplaceAll(line, " (", "("), w.word) {
					add(ruleLuaWord, f, i+1, w.word+": "+w.why)
				}
			}
		}
		if slices.Contains(preludes, f.path) {
			continue
		}
		times, calls, defs := clockUse(prelude + code)
		if times != 1 {
			add(ruleLuaTime, f, 1, fmt.Sprintf("TIME stands %d times in the script with its preludes, want 1", times))
		}
		if defs > 0 && calls != 1 {
			add(ruleLuaTime, f, 1, fmt.Sprintf("%s is called %d times, want 1", luaClock, calls))
		}
	}
	return found
}

var luaToken = regexp.MustCompile(`(?s)--\[\[.*?\]\]|--[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'`)

// stripLua takes the comments out of a Lua text. Lines keep their numbers.
func stripLua(text string) string {
	return luaToken.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "--") {
			return strings.Repeat("\n", strings.Count(s, "\n"))
		}
		return s
	})
}
