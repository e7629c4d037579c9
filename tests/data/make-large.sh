#!/bin/bash
# Makes two large inputs for timing, from lists that every Debian machine can fetch:
#
#   paths.txt    the path of every file in Debian's main packages. It has about
#                7 million lines, and nearly all of them are different.
#   folders.txt  the folder of each of those paths, line by line. It has as many
#                lines, and most of them are repeats.
#
# The project does not contain them, because each has hundreds of megabytes. A
# later point release of Debian gives slightly different files.
#
# Usage, as root on Debian: make-large.sh OUTPUT-FOLDER
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

[ $# -eq 1 ] || { echo "usage: $0 OUTPUT-FOLDER" >&2; exit 2; }
mkdir -p "$1"
cd "$1"

# apt fetches the lists of the packages' contents only while apt-file is
# installed, because apt-file's configuration asks for them. So this updates again.
apt-get update
apt-get install -y --no-install-recommends apt-file
apt-get update

# apt tells where it put the lists and how they are compressed, since both
# differ between machines. Only Debian's own lists count, because a machine may
# have other sources too.
apt-get indextargets --format '$(FILENAME)' \
    'Identifier: Contents-deb' 'Origin: Debian' 'Component: main' > lists.tmp
[ -s lists.tmp ] || { echo "$0: apt fetched no lists of contents" >&2; exit 1; }

# A line is a path, blanks, and the packages that contain it. A path may
# contain blanks and the packages never do, so the line is cut at the last blanks.
while IFS= read -r list; do
    /usr/lib/apt/apt-helper cat-file "$list"
done < lists.tmp | sed 's/[[:blank:]]\{1,\}[^[:blank:]]*$//' > paths.txt
rm lists.tmp

# This prints what dirname(1) prints, without starting it 7 million times.
sed -e 's:/[^/]*$::' -e t -e 's/.*/./' paths.txt > folders.txt

wc paths.txt folders.txt
