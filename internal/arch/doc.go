// Package arch holds the tests that keep the repository's shape. It has no code
// of its own.
//
// The shape is a few tables in tables_test.go: the floor of each package, the
// owner of each third-party library, what production code may never reach, and
// the files that are exempt from a rule. To extend the repository, extend the
// tables:
//
//   - a new package gets a row in floors;
//   - a new library gets a row in libraries, after it was agreed on in an ADR;
//   - a Lua text that is put in front of the scripts gets a row in luaPreludes;
//   - a file that must break a rule gets a row in exceptions, with its reason.
//
// The rules are pure functions from a graph of packages, a list of files or a
// go.mod to a list of faults (rules_test.go, hygiene_test.go). Each has a test
// which feeds it a fault and sees it reported (bad_test.go), so that a rule
// which checks nothing cannot pass for one which finds nothing.
package arch
