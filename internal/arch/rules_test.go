package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A pkg is what the rules know of one package.
type pkg struct {
	// imports are those of the non-test files, for all systems and build tags.
	imports []string
	// testImports are those of the test files, in and outside the package.
	testImports []string
}

// A graph holds packages by import path: the repository's and all they reach.
type graph map[string]pkg

// isOwn tells whether an import path belongs to the repository.
func isOwn(path string) bool {
	return path == modulePath || strings.HasPrefix(path, modulePath+"/")
}

// folder is the folder of one of the repository's packages, "." for the root's.
func folder(path string) string {
	if path == modulePath {
		return "."
	}
	return strings.TrimPrefix(path, modulePath+"/")
}

// isStandard tells whether an import path is the standard library's: such a path
// has no dot in its first element.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// matches tells whether a path is named by a pattern: a path, or "x/..." for x
// and all below it.
func matches(pattern, path string) bool {
	base, tree := strings.CutSuffix(pattern, "/...")
	return path == base || tree && strings.HasPrefix(path, base+"/")
}

// rowOf finds a folder's row: the one with the longest pattern.
func rowOf(rows []row, dir string) (row, bool) {
	best, found := row{}, false
	for _, r := range rows {
		if matches(r.path, dir) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// sameUnit tells whether two folders of one row belong together: below an
// "x/..." row those with the same first folder do, and x itself with each.
func sameUnit(r row, a, b string) bool {
	base, tree := strings.CutSuffix(r.path, "/...")
	if !tree || a == base || b == base {
		return true
	}
	first := func(dir string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(dir, base+"/"), "/")
		return name
	}
	return first(a) == first(b)
}

// own returns the repository's packages of a graph, sorted.
func own(g graph) []string {
	paths := slices.DeleteFunc(slices.Collect(maps.Keys(g)), func(p string) bool { return !isOwn(p) })
	slices.Sort(paths)
	return paths
}

// production returns the production packages of a graph, sorted.
func production(rows []row, g graph) []string {
	return slices.DeleteFunc(own(g), func(p string) bool {
		r, ok := rowOf(rows, folder(p))
		return !ok || !r.production
	})
}

// floorFaults checks that each package has a floor and that imports point down,
// to packages that the importer's row names.
func floorFaults(rows []row, g graph) []string {
	var faults []string
	for _, path := range own(g) {
		dir := folder(path)
		from, ok := rowOf(rows, dir)
		if !ok {
			faults = append(faults, fmt.Sprintf("%s has no floor: give it a row in floors", dir))
			continue
		}
		check := func(imports []string, test bool) {
			for _, imported := range imports {
				if !isOwn(imported) || imported == path {
					continue
				}
				target := folder(imported)
				to, ok := rowOf(rows, target)
				if !ok {
					continue // reported at the package itself
				}
				if why := importFault(from, dir, to, target, test); why != "" {
					who := dir
					if test {
						who = "a test of " + dir
					}
					faults = append(faults, fmt.Sprintf("%s imports %s: %s", who, target, why))
				}
			}
		}
		check(g[path].imports, false)
		check(g[path].testImports, true)
	}
	return faults
}

// importFault says what is wrong with one import between two packages, or "".
func importFault(from row, dir string, to row, target string, test bool) string {
	switch {
	case from.path == to.path && sameUnit(from, dir, target):
		return ""
	case test && (from.testHelp || to.testHelp || slices.Contains(from.testsUse, target)):
		return ""
	case to.testHelp:
		if from.testHelp || slices.Contains(from.uses, target) {
			return ""
		}
		return "it is for tests"
	case from.testHelp:
		if slices.Contains(from.uses, target) {
			return ""
		}
		return "test help does not use it by its row in floors"
	case to.floor == from.floor:
		return fmt.Sprintf("both are on floor %d and do not know each other", to.floor)
	case to.floor > from.floor:
		return fmt.Sprintf("floor %d is above floor %d", to.floor, from.floor)
	case test || slices.Contains(from.uses, "below") || slices.Contains(from.uses, target):
		return ""
	}
	return "its row in floors does not name it"
}

// tableFaults checks the tables themselves.
func tableFaults(rows []row, libs []library) []string {
	var faults []string
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.path] {
			faults = append(faults, r.path+" has two rows in floors")
		}
		seen[r.path] = true
		for _, used := range r.uses {
			if used == "below" {
				continue
			}
			to, ok := rowOf(rows, used)
			switch {
			case !ok:
				faults = append(faults, fmt.Sprintf("%s uses %s, which has no row in floors", r.path, used))
			case r.production && to.testHelp:
				faults = append(faults, fmt.Sprintf("%s is production and uses %s, which is for tests", r.path, used))
			case !r.testHelp && !to.testHelp && to.floor >= r.floor:
				faults = append(faults, fmt.Sprintf("%s on floor %d uses %s on floor %d", r.path, r.floor, used, to.floor))
			}
		}
	}
	others := 0
	for _, l := range libs {
		if !l.core {
			others++
		}
		if !l.core && len(l.owners) > 0 {
			faults = append(faults, l.path+" is not of the core and has owners in production")
		}
		if len(l.owners) > 1 && l.why == "" {
			faults = append(faults, l.path+" has more than one owner and no reason")
		}
		for _, o := range l.owners {
			if r, ok := rowOf(rows, o); !ok || !r.production {
				faults = append(faults, fmt.Sprintf("%s is owned by %s, which is no production package", l.path, o))
			}
		}
	}
	if others > maxTestOnly {
		faults = append(faults, fmt.Sprintf("%d libraries stand beside the core, at most %d may", others, maxTestOnly))
	}
	return faults
}

// missingRows are the folders of the rows that must exist and do not.
func missingRows(rows []row, g graph) []string {
	var missing []string
	for _, r := range rows {
		if _, ok := g[modulePath+"/"+r.path]; !ok && !r.optional {
			missing = append(missing, r.path)
		}
	}
	return missing
}

// requirementFaults checks that the direct requirements of the root go.mod are
// the listed libraries. One that is not required is a fault only in a whole
// repository, where every row that must exist does.
func requirementFaults(libs []library, direct []string, whole bool) []string {
	var faults []string
	for _, path := range direct {
		if !slices.ContainsFunc(libs, func(l library) bool { return l.path == path }) {
			faults = append(faults, fmt.Sprintf("go.mod requires %s, which is not in libraries", path))
		}
	}
	for _, l := range libs {
		if whole && !slices.Contains(direct, l.path) {
			faults = append(faults, fmt.Sprintf("%s is in libraries and no direct requirement of go.mod: tidy it, or remove the row", l.path))
		}
	}
	return faults
}

// ownerFaults checks that production packages import third-party libraries only
// where the libraries' rows say so.
func ownerFaults(rows []row, libs []library, g graph) []string {
	var faults []string
	for _, path := range production(rows, g) {
		dir := folder(path)
		for _, imported := range g[path].imports {
			if isOwn(imported) || isStandard(imported) {
				continue
			}
			i := slices.IndexFunc(libs, func(l library) bool { return matches(l.path+"/...", imported) })
			switch {
			case i < 0:
				faults = append(faults, fmt.Sprintf("%s imports %s, which is not in libraries", dir, imported))
			case len(libs[i].owners) == 0:
				faults = append(faults, fmt.Sprintf("%s imports %s in a non-test file, but it is for tests only", dir, imported))
			case !slices.Contains(libs[i].owners, dir):
				faults = append(faults, fmt.Sprintf("%s imports %s, which only %s may", dir, imported,
					strings.Join(libs[i].owners, " and ")))
			}
		}
	}
	return faults
}

// reachFaults checks that no production package reaches a banned one through the
// imports of non-test files. It reports the shortest way to each.
func reachFaults(rows []row, banned []ban, g graph) []string {
	var faults []string
	for _, start := range production(rows, g) {
		parent := map[string]string{start: ""}
		for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			if i := slices.IndexFunc(banned, func(b ban) bool { return matches(b.path, at) }); i >= 0 {
				way := []string{}
				for p := at; p != ""; p = parent[p] {
					way = append(way, p)
				}
				slices.Reverse(way)
				faults = append(faults, fmt.Sprintf("%s reaches %s (%s): %s",
					folder(start), at, banned[i].why, strings.Join(way, " > ")))
				continue
			}
			for _, next := range g[at].imports {
				if _, seen := parent[next]; !seen {
					parent[next] = at
					queue = append(queue, next)
				}
			}
		}
	}
	return faults
}

// moduleFaults checks that each nested module, given by folder, has the path of
// its folder.
func moduleFaults(modules map[string]string) []string {
	var faults []string
	for _, dir := range slices.Sorted(maps.Keys(modules)) {
		want := modulePath
		if dir != "." {
			want += "/" + dir
		}
		if got := modules[dir]; got != want {
			faults = append(faults, fmt.Sprintf("the module in %s is %s, want %s", dir, got, want))
		}
	}
	return faults
}
