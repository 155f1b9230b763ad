#!/bin/sh
# A Debian of another release, with packages: make-chroot.sh <suite> <folder> <package>... Needs root, debootstrap and Debian's
# archive. <folder> is absolute. It is left as it is if the same was made there before.
set -eu
suite=$1
folder=$2
shift 2
if [ -e "$folder/made.stamp" ] && [ "$(cat "$folder/made.stamp")" = "$suite $*" ]; then exit 0; fi
[ "$(id -u)" -eq 0 ] || { echo "A chroot with Debian $suite needs root." >&2 && exit 1; }
sh "$(dirname "$0")/system-packages.sh" debootstrap=debootstrap
rm -rf "$folder"
mkdir -p "$folder"
unset TMPDIR # is not in there
debootstrap --variant=minbase "$suite" "$folder"
chroot "$folder" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
echo "$suite $*" >"$folder/made.stamp"
