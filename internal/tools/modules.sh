#!/bin/sh
# Prints the folder of every Go module of the repository, the root first, except
# the lint tools' module.
set -eu
cd "$(dirname "$0")/../.."
find . -path './.?*' -prune -o -name testdata -prune -o -name vendor -prune -o \
	-path ./internal/tools -prune -o -name go.mod -print |
	sed 's|/go\.mod$||' | LC_ALL=C sort
