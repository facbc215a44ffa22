#!/bin/sh
# Makes sure that programs which no Go module can bring are on this machine.
# Usage: need.sh [redis-server] [cc]
#
# On a machine with apt it installs what is missing, as root or through sudo.
# On any other it stops and says which command installs it.
set -eu

go=${GO:-go}
if ! command -v "$go" >/dev/null 2>&1; then
	echo "need.sh: Go is missing; install the version that go.mod names or a newer one" >&2
	exit 1
fi

# The names of what is missing, and the packages that hold it, by system.
missing='' apt='' brew='' dnf='' apk='' pacman='' zypper=''

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

if command -v apt-get >/dev/null 2>&1; then
	if [ -n "$as_root" ] && ! command -v sudo >/dev/null 2>&1; then
		tell "apt-get update && apt-get install -y$apt (as root)"
	fi
	echo "== installing$apt"
	# The tests start their own servers. RUNLEVEL=1 keeps the package from
	# starting one on the usual port, but not under systemd, where it is in
	# nobody's way either.
	# An unreachable extra source must not stop the install.
	${as_root}apt-get update -q </dev/null || true
	if ${as_root}env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get install -y -q --no-install-recommends $apt </dev/null; then
		exit 0
	fi
	tell "${as_root}apt-get update && ${as_root}apt-get install -y$apt"
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
