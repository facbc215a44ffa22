#!/bin/sh
# Lists the packages of the module in this folder, but not those of the main module
# that are named. The one with the most tests comes first, so that no core waits for it
# in the end.
set -eu
module=$("${GO:-go}" list -m)
skip=
for dir in "$@"; do skip="$skip $module${dir#.} "; done
list=$("${GO:-go}" list ./...)
for first in yes no; do
	for pkg in $list; do
		case "$skip" in *" $pkg "*) continue ;; esac
		case "$pkg" in */limiter/hybrid) turn=yes ;; *) turn=no ;; esac
		if [ $turn = $first ]; then echo "$pkg"; fi
	done
done
