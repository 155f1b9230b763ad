#!/bin/sh
# Makes a chroot of another Debian release with packages: make-chroot.sh <suite> <folder> <package>... Needs root,
# debootstrap and Debian's archive. <folder> is absolute. If it has this suite and these packages, nothing is done.
#
# Removing a folder in which the machine's own /dev is mounted removes the machine's devices. So everything runs in a
# separate mount namespace, whose mounts end with it.
set -eu
suite=$1
folder=$2
shift 2
if [ -e "$folder/made.stamp" ] && [ "$(cat "$folder/made.stamp")" = "$suite $*" ]; then exit 0; fi
[ "$(id -u)" -eq 0 ] || { echo "A chroot with Debian $suite needs root." >&2 && exit 1; }
if grep -qF " $folder/" /proc/self/mounts; then
    echo "Something is mounted in $folder. Unmount it (findmnt lists it) before anything removes this folder." >&2
    exit 1
fi
sh "$(dirname "$0")/system-packages.sh" debootstrap=debootstrap unshare=util-linux
rm -rf --one-file-system "$folder"
mkdir -p "$folder"
unset TMPDIR # that folder is not in the chroot
# shellcheck disable=SC2016 # for the inner shell
unshare --mount --propagation private sh -euc '
    suite=$1 folder=$2
    shift 2
    debootstrap --variant=minbase "$suite" "$folder"
    chroot "$folder" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
' sh "$suite" "$folder" "$@"
echo "$suite $*" >"$folder/made.stamp"
