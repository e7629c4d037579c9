#!/bin/bash
# Make two large inputs for timing, from lists every Debian machine can fetch:
#
#   paths.txt    the path of every file in Debian's main packages: about
#                7 million lines, nearly every one of them different
#   folders.txt  the folder of each of those paths, line for line: as many
#                lines, most of them repeats
#
# They are made, not kept in the project, because they are hundreds of
# megabytes each. A later point release of Debian gives slightly other files.
#
# Usage, as root on Debian: make-large.sh OUTPUT-FOLDER
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

[ $# -eq 1 ] || { echo "usage: $0 OUTPUT-FOLDER" >&2; exit 2; }
mkdir -p "$1"
cd "$1"

# apt fetches the lists of packages' contents only while apt-file is
# installed (its configuration asks for them), hence the second update.
apt-get update
apt-get install -y --no-install-recommends apt-file
apt-get update

# Ask apt where it put the lists and in which compression: both differ from
# machine to machine. Only Debian's own, for other sources may be set up too.
apt-get indextargets --format '$(FILENAME)' \
    'Identifier: Contents-deb' 'Origin: Debian' 'Component: main' > lists.tmp
[ -s lists.tmp ] || { echo "$0: apt fetched no lists of contents" >&2; exit 1; }

# A line is a path, blanks, and the packages that hold it. Paths may have
# blanks in them and the packages never do, so cut at the last blanks.
while IFS= read -r list; do
    /usr/lib/apt/apt-helper cat-file "$list"
done < lists.tmp | sed 's/[[:blank:]]\{1,\}[^[:blank:]]*$//' > paths.txt
rm lists.tmp

# What dirname(1) prints for each path, without starting it 7 million times.
sed -e 's:/[^/]*$::' -e t -e 's/.*/./' paths.txt > folders.txt

wc paths.txt folders.txt
