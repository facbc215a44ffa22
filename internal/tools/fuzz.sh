#!/bin/sh
# Runs every fuzz function of the given modules, one after the other.
# Usage: fuzz.sh TIME MODULE...
#
# An input that fails is written under the package's testdata/fuzz and is from
# then on a case of the usual test run.
set -eu

time=$1
shift
root=$PWD
failed=0 count=0
for module in "$@"; do
	cd "$root/$module"
	for dir in $("${GO:-go}" list -f '{{.Dir}}' ./...); do
		names=$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go 2>/dev/null || true)
		for name in $names; do
			count=$((count + 1))
			echo "== $dir: $name for $time"
			(cd "$dir" && "${GO:-go}" test -run='^$' -fuzz="^$name\$" -fuzztime="$time" .) || failed=1
		done
	done
done
echo "fuzz functions run: $count"
exit $failed
