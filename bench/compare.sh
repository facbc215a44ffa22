#!/bin/sh
# Runs the Go benchmarks of local and hybrid at a revision and as they are here, in
# turns, and prints what benchstat makes of both.
# Usage: compare.sh BENCHSTAT REVISION
#
# COUNT (6) is how often each runs, TIME (100ms) how long, and BENCH (.) which.
set -eu

benchstat=$1 base=$2
go=${GO:-go}
root=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

# A copy and not a work tree: nothing is left behind in the repository.
git -C "$root" rev-parse --verify --quiet "$base^{commit}" >/dev/null || {
	echo "compare.sh: no revision $base" >&2
	exit 2
}
mkdir "$tmp/base"
git -C "$root" archive "$base" >"$tmp/base.tar"
tar -x -C "$tmp/base" -f "$tmp/base.tar"
ln -s "$root" "$tmp/here"

for side in base here; do
	for package in local hybrid; do
		(cd "$tmp/$side/" && "$go" test -c -o "$tmp/$side.$package" "./$package")
	done
done

i=0
while [ $i -lt "${COUNT:-6}" ]; do
	i=$((i + 1))
	for package in local hybrid; do
		for side in base here; do
			echo "== $i of ${COUNT:-6}: $package, $side" >&2
			(cd "$tmp/$side/$package" && "$tmp/$side.$package" -test.run='^$' -test.bench="${BENCH:-.}" \
				-test.benchmem -test.benchtime="${TIME:-100ms}") >>"$tmp/$side.txt"
		done
	done
done
"$benchstat" "$base=$tmp/base.txt" "here=$tmp/here.txt"
