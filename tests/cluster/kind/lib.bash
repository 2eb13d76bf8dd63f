# shellcheck shell=bash
# What the scripts that make images share: images as archives that `docker load` and containerd read.

KIND_VERSION=$(awk '$1 == "sigs.k8s.io/kind" && $2 { print $2 }' "$HERE/kind/go.mod")
KIND_SOURCE=$(cd "$HERE/kind" && GOFLAGS=-mod=readonly GOWORK=off go list -m -f '{{.Dir}}' sigs.k8s.io/kind)

# workplace NAME: a directory for what an archive of that name is made of, which the script removes. Images are made by one script at a
# time: what is there already is of one that was killed.
workplace() {
    mkdir -p "$CACHE/kind"
    exec 7<"$CACHE/kind"
    flock --nonblock 7 || { say "waiting for another script to make its image" && flock 7; }
    rm -rf --one-file-system "$CACHE/kind/$1".??????
    work=$(mktemp -d "$CACHE/kind/$1.XXXXXX")
}

# archive NAME DIRECTORY CONFIG: writes an image to stdout: one layer with the files of a directory, and a configuration in JSON.
archive() {
    local parts digest
    parts=$(mktemp -d "$work/archive.XXXXXX")
    tar --create --numeric-owner --sort name --directory "$2" . >"$parts/layer.tar"
    digest=$(sha256sum <"$parts/layer.tar" | cut -d ' ' -f 1)
    jq --null-input --argjson config "$3" --arg digest "sha256:$digest" --arg machine "$(dpkg --print-architecture)" \
        '{architecture: $machine, os: "linux", config: $config, rootfs: {type: "layers", diff_ids: [$digest]}}' \
        >"$parts/config.json"
    jq --null-input --arg name "$1" '[{Config: "config.json", RepoTags: [$name], Layers: ["layer.tar"]}]' \
        >"$parts/manifest.json"
    tar --create --directory "$parts" manifest.json config.json layer.tar
    rm -rf "$parts"
}

# kept NAME FILE…: where the archive of that name is kept: it depends on the contents of files, and on what NAME says.
kept() {
    local name=$1
    shift
    echo "$CACHE/kind/$name-$({ echo "$name" && cat "$@"; } | sha256sum | cut -c 1-16).tar"
}

# libraries ROOT PROGRAM…: the shared libraries of programs below ROOT.
libraries() {
    local root=$1
    shift
    chroot "$root" ldd "$@" 2>/dev/null | grep -oE '/[^ )]+\.so[^ ):]*' | sort -u
}
