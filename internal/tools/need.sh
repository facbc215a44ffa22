#!/bin/sh
# Makes sure that programs which no Go module can bring are on this machine.
# Usage: need.sh [redis-server] [cc] [promtool] [chromium]
#
# On a machine with apt it installs what is missing, as root or through sudo.
# On any other it stops and says which command installs it. promtool is taken out
# of its package into .bin/: installed, the package would start a Prometheus.
set -eu

go=${GO:-go}
if ! command -v "$go" >/dev/null 2>&1; then
	echo "need.sh: Go is missing; install the version that go.mod names or a newer one" >&2
	exit 1
fi

bin=$(cd "$(dirname "$0")/../.." && pwd)/.bin

# The names of what is missing, and the packages that hold it, by system. unpack
# is a package of apt whose programs are wanted, but not the rest.
missing='' apt='' unpack='' brew='' dnf='' apk='' pacman='' zypper=''

for program in "$@"; do
	case $program in
	redis-server)
		command -v redis-server >/dev/null 2>&1 && continue
		missing="$missing redis-server"
		apt="$apt redis-server" brew="$brew redis" dnf="$dnf redis"
		apk="$apk redis" pacman="$pacman redis" zypper="$zypper redis"
		;;
	cc)
		# The race detector is linked by a C compiler, but for macOS.
		[ "$("$go" env GOOS)" = darwin ] && continue
		command -v "$("$go" env CC)" >/dev/null 2>&1 && continue
		missing="$missing gcc"
		apt="$apt gcc libc6-dev" dnf="$dnf gcc" apk="$apk gcc musl-dev"
		pacman="$pacman gcc" zypper="$zypper gcc"
		;;
	promtool)
		command -v promtool >/dev/null 2>&1 && continue
		[ -x "$bin/promtool" ] && continue
		missing="$missing promtool" unpack=prometheus
		brew="$brew prometheus" dnf="$dnf golang-github-prometheus"
		apk="$apk prometheus" pacman="$pacman prometheus"
		zypper="$zypper golang-github-prometheus-prometheus"
		;;
	chromium)
		for name in chromium chromium-browser google-chrome; do
			command -v $name >/dev/null 2>&1 && continue 2
		done
		# A page without any font has no text to lay out.
		missing="$missing chromium"
		apt="$apt chromium fonts-dejavu-core" brew="$brew --cask chromium"
		dnf="$dnf chromium dejavu-sans-fonts" apk="$apk chromium font-dejavu"
		pacman="$pacman chromium ttf-dejavu" zypper="$zypper chromium dejavu-fonts"
		;;
	*)
		echo "need.sh: no rule for $program" >&2
		exit 2
		;;
	esac
done

[ -n "$missing" ] || exit 0

# tell stops with the command that installs what is missing.
tell() {
	echo "need.sh: missing:$missing" >&2
	echo "need.sh: install with: $1" >&2
	echo "need.sh: then run make again" >&2
	exit 1
}

# as_root is the prefix of a command for root: none for root itself.
as_root='sudo '
[ "$(id -u)" = 0 ] && as_root=''

# take_out brings promtool from its package into .bin/. It needs no root.
take_out() {
	echo "== taking promtool out of the package $unpack"
	tmp=$(mktemp -d)
	(cd "$tmp" && apt-get download -q -o APT::Sandbox::User=root "$unpack" </dev/null &&
		dpkg-deb -x ./*.deb .) &&
		mkdir -p "$bin" && mv "$tmp/usr/bin/promtool" "$bin/promtool" && "$bin/promtool" --version >/dev/null
	code=$?
	rm -rf "$tmp"
	return $code
}

if command -v apt-get >/dev/null 2>&1; then
	if [ -n "$as_root" ] && ! command -v sudo >/dev/null 2>&1; then
		# Without root the lists are as old as they are.
		[ -z "$apt" ] && take_out && exit 0
		tell "apt-get update && apt-get install -y$apt $unpack (as root)"
	fi
	[ -z "$apt" ] || echo "== installing$apt"
	# The tests start their own servers. RUNLEVEL=1 keeps the package from
	# starting one on the usual port, but not under systemd, where it is in
	# nobody's way either.
	# An unreachable extra source must not stop the install.
	${as_root}apt-get update -q </dev/null || true
	if [ -n "$apt" ] && ! ${as_root}env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get install -y -q --no-install-recommends $apt </dev/null; then
		tell "${as_root}apt-get update && ${as_root}apt-get install -y$apt $unpack"
	fi
	if [ -n "$unpack" ] && ! take_out; then
		tell "${as_root}apt-get update && ${as_root}apt-get install -y $unpack"
	fi
	exit 0
elif command -v brew >/dev/null 2>&1 || [ "$(uname)" = Darwin ]; then
	tell "brew install$brew"
elif command -v dnf >/dev/null 2>&1; then
	tell "${as_root}dnf install -y$dnf"
elif command -v apk >/dev/null 2>&1; then
	tell "${as_root}apk add$apk"
elif command -v pacman >/dev/null 2>&1; then
	tell "${as_root}pacman -S --needed$pacman"
elif command -v zypper >/dev/null 2>&1; then
	tell "${as_root}zypper install -y$zypper"
else
	tell "your system's package manager (the programs must be on PATH)"
fi
