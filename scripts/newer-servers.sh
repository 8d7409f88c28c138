#!/usr/bin/env bash
# newer-servers.sh DIRECTORY SERVER…: unpacks servers of Debian's unstable suite into DIRECTORY, and installs none.
# SERVER: redis, valkey, memcached, etcd, postgresql, mariadb, mysql, zookeeper. They come from the package source of this
# machine, with their own C library, to which patchelf binds them. DIRECTORY/bin has links to their programs, PostgreSQL's
# are in DIRECTORY/postgresql/usr/lib/postgresql, the jars of ZooKeeper in DIRECTORY/zookeeper/usr/share/java.
set -euo pipefail

directory=$(mkdir -p "$1/bin" && cd "$1" && pwd)
shift

# The one of a machine with Debian's sources in the format of Debian 12 and newer, or in the older one.
source=$({ awk '/^URIs:/ && !/security/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources ||
  awk '$1 == "deb" && !/security/ { for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) { print $i; exit } }' /etc/apt/sources.list; } 2>/dev/null)
command -v patchelf >/dev/null || apt-get install -y -qq patchelf >/dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial}
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $source sid main" >"$work/sources.list"
apt=(-qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update

# What programs need where they are installed, and not where they are only unpacked.
for_installation='^(systemd|debconf|perl|adduser|passwd|procps|locales|login|init|base-|sysvinit|util-linux|ucf|netbase|mount|udev|default-jre|openjdk|java-common|ca-certificates-java)'

# Unpacks the packages $2…, and what they need at run time, into the folder $1.
unpack() {
  local root=$directory/$1 debs=$work/$1 packages loader libraries
  mkdir -p "$debs" "$root"
  packages=$(apt-get "${apt[@]}" -s install --no-install-recommends "${@:2}" | awk '/^Inst/ { print $2 }' | grep -vE "$for_installation")
  # shellcheck disable=SC2086 -- one argument each
  (cd "$debs" && apt-get "${apt[@]}" download $packages)
  for package in "$debs"/*.deb; do dpkg -x "$package" "$root"; done
  loader=$(find "$root" -name 'ld-linux-*.so.*' | head -1)
  libraries=$(find "$root"/usr/lib/*-linux-gnu -maxdepth 2 -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
  { find "$root"/usr/{bin,sbin,lib/postgresql} -type f -perm -u+x 2>/dev/null || true; } | while read -r file; do
    # Scripts are no programs to be bound.
    patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$file" 2>/dev/null || true
  done
}

# Links the programs $2… of the folder $1.
offer() {
  local name file
  for name in "${@:2}"; do
    for file in "$directory/$1"/usr/{bin,sbin}/"$name"; do
      if [ -e "$file" ]; then ln -sfn "$file" "$directory/bin/$name"; fi
    done
  done
}

for server in "$@"; do
  case $server in
    redis) unpack redis redis-server; offer redis redis-server redis-cli ;;
    valkey) unpack valkey valkey-server; offer valkey valkey-server ;;
    memcached) unpack memcached memcached; offer memcached memcached ;;
    etcd) unpack etcd etcd-server etcd-client; offer etcd etcd etcdctl ;;
    postgresql) unpack postgresql postgresql ;;
    mariadb) unpack mariadb mariadb-server; offer mariadb mariadbd mariadb-install-db ;;
    mysql) unpack mysql mysql-server; offer mysql mysqld ;;
    zookeeper) unpack zookeeper zookeeper ;;
    *) echo "unknown server: $server" >&2; exit 2 ;;
  esac
done
