#!/bin/sh
# Installs Debian packages for the commands that are missing: system-packages.sh <command>=<package> ...
# A name that starts with a slash is a file, and may contain wildcards.
# Without permission (not root, not Debian) it prints what is missing and ends with status 1.
set -u
missing=""
packages=""
there() {
    case $1 in
        # shellcheck disable=SC2086 # to expand the wildcards
        /*) ls $1 >/dev/null 2>&1 ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}
for pair in "$@"; do
    if ! there "${pair%%=*}"; then
        missing="$missing ${pair%%=*}"
        packages="$packages ${pair#*=}"
    fi
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    echo "Installing with apt-get:$packages"
    log=$(mktemp)
    # shellcheck disable=SC2086 # one word per package
    if { apt-get update -q && apt-get install -q -y --no-install-recommends $packages; } >"$log" 2>&1; then
        rm -f "$log"
        exit 0
    fi
    tail -n 20 "$log" >&2
    rm -f "$log"
    echo "apt-get could not install:$packages." >&2
    exit 1
fi
echo "Missing:$missing. On Debian or Ubuntu: sudo apt-get install$packages" >&2
exit 1
